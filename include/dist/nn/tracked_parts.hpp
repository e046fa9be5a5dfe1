#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/given_value.hpp>

namespace dist::nn {

/// A leaf of a walk that holds the tensors of a layout, as one leaf for each of them. A tensor is then found by its name,
/// also in a network where it lies elsewhere because a layer was inserted before it. `Leaf` is a leaf or a reference to one.
///
/// A walk asks the leaf for its elements once, for the first part that is asked, and gives them back once, after the last
/// part: either may be a collective call with all elements. Until then the parts have what was restored, and the leaf has
/// not. Elements that no part was given stay as they are.
template <class Leaf>
class TrackedParts {
  using T = typename std::remove_cvref_t<Leaf>::Element;

  /// What one walk through the parts has asked for and is to give back.
  struct TrackedTensors {
    Leaf& leaf;
    std::optional<Tensor<T>> all;
    dist::detail::UniqueFunction<void> give_back;

    Tensor<T>& elements(const InCrossReplica auto& scope) {
      if (!all) all = leaf.whole(scope);
      return *all;
    }
  };

  class Part {
   public:
    using Element = T;

    Part(TrackedTensors& walked, const Parameter& parameter) : walked_(&walked), parameter_(&parameter) {}

    [[nodiscard]] const Shape& shape() const noexcept { return parameter_->shape; }

    /// See DistributedVariable::whole.
    [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& scope) const {
      return Tensor<T>{TensorView<const T>{walked_->elements(scope).data() + parameter_->offset, shape()}};
    }
    /// Its inverse. Throws ShapeMismatch.
    template <class Values>
    void restore(const InCrossReplica auto& scope, const Values& values) const {
      const auto given = dist::detail::given_to(detail::NamedPart<T>{parameter_->name(), shape()}, values);
      Tensor<T>& all = walked_->elements(scope);
      for (std::size_t i = 0; i < shape().elements(); ++i) all[parameter_->offset + i] = given[i];
      if (!walked_->give_back)
        walked_->give_back = [walked = walked_, scope] { walked->leaf.restore(scope, *walked->all); };
    }

   private:
    TrackedTensors* walked_;
    const Parameter* parameter_;
  };

 public:
  TrackedParts(Leaf&& leaf, std::span<const Parameter> layout) : leaf_(std::forward<Leaf>(leaf)), layout_(layout) {}

  /// Every tensor of the layout. See Trackable.
  void track(auto& visit) {
    TrackedTensors walked{leaf_, std::nullopt, {}};
    for (const Parameter& parameter : layout_) visit(parameter.name(), Part{walked, parameter});
    if (walked.give_back) walked.give_back();
  }

 private:
  Leaf leaf_;
  std::span<const Parameter> layout_;
};

template <class Leaf>
TrackedParts(Leaf&&, std::span<const Parameter>) -> TrackedParts<Leaf>;

namespace detail {

/// Where the parameters of a network lie, or nothing of a network that does not say it.
template <class Network>
[[nodiscard]] std::span<const Parameter> layout_of([[maybe_unused]] const Network& network) {
  if constexpr (HasLayout<Network>) {
    using Layout = decltype(network.layout());
    static_assert(
        std::is_lvalue_reference_v<Layout> || std::is_same_v<Layout, std::span<const Parameter>>,
        "the layout() of a network is kept by its optimizer: return a std::span<const nn::Parameter> of what the "
        "network has, or a reference to it");
    return network.layout();
  } else {
    return {};
  }
}

/// Visits a leaf as `name`, in parts where there is a layout.
template <class Leaf>
void visit_parts(auto& visit, std::string_view name, Leaf&& leaf, std::span<const Parameter> layout) {
  if (layout.empty())
    visit(name, std::forward<Leaf>(leaf));
  else
    visit(name, TrackedParts{std::forward<Leaf>(leaf), layout});
}

}  // namespace detail

}  // namespace dist::nn
