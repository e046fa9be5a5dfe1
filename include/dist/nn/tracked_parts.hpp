#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::nn {

/// Splits a leaf of a walk (Trackable) into one leaf per tensor of a layout, so that tensors are found by name even if
/// an inserted layer has moved them. `Leaf` is a leaf or a reference to one.
///
/// A walk reads the whole leaf once, for the first part that is read, and writes it once, after the last part; both may
/// be collective calls. Until then only the parts have restored values. Other elements do not change.
template <class Leaf>
class TrackedParts {
  using T = typename std::remove_cvref_t<Leaf>::Element;

  /// The elements that a walk has read and will write.
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
    /// Assigns this tensor. Throws ShapeMismatch.
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
  /// `layout` describes the tensors in `leaf`, and must outlive this object.
  TrackedParts(Leaf&& leaf, std::span<const Parameter> layout) : leaf_(std::forward<Leaf>(leaf)), layout_(layout) {}

  /// Tracks every tensor. See Trackable.
  void track(auto& visit) {
    TrackedTensors walked{leaf_, std::nullopt, {}};
    for (const Parameter& parameter : layout_) visit(parameter.name(), Part{walked, parameter});
    if (walked.give_back) walked.give_back();
  }

 private:
  Leaf leaf_;
  std::span<const Parameter> layout_;
};

/// Deduces the type of the leaf.
template <class Leaf>
TrackedParts(Leaf&&, std::span<const Parameter>) -> TrackedParts<Leaf>;

namespace detail {

/// Returns the places of a network's parameters; empty without a layout.
template <class Network>
[[nodiscard]] std::span<const Parameter> layout_of([[maybe_unused]] const Network& network) {
  if constexpr (HasLayout<Network>) {
    using Layout = decltype(network.layout());
    static_assert(std::is_lvalue_reference_v<Layout> || std::is_same_v<Layout, std::span<const Parameter>>,
                  "an optimizer stores the layout() of its network: return a std::span<const nn::Parameter>, or a "
                  "reference, to parameters that the network owns");
    return network.layout();
  } else {
    return {};
  }
}

/// Visits a leaf as `name`, split into parts if there is a layout.
template <class Leaf>
void visit_parts(auto& visit, std::string_view name, Leaf&& leaf, std::span<const Parameter> layout) {
  if (layout.empty())
    visit(name, std::forward<Leaf>(leaf));
  else
    visit(name, TrackedParts{std::forward<Leaf>(leaf), layout});
}

}  // namespace detail

/// A buffer as a leaf of a walk (Trackable). With OnlyFirstReplica all replicas have equal elements; with Sum only
/// their sum matters. Refers to the buffer.
template <class Buffer, class Aggregation>
class TrackedBuffer {
 public:
  /// The type of the elements.
  using Element = typename Buffer::Element;

  /// The buffer must outlive this object.
  explicit TrackedBuffer(const Buffer& buffer) : buffer_(&buffer) {}

  /// The shape of one replica's array.
  [[nodiscard]] const Shape& shape() const noexcept { return buffer_->shape(); }

  /// See DistributedVariable::whole.
  [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
    auto& strategy = scope.strategy();
    Tensor<Element> all{buffer_->shape()}, mine{buffer_->shape()};
    for (std::size_t local = 0; local < (sums ? strategy.num_local_replicas() : 1); ++local) {
      dist::detail::copy_and_wait(buffer_->queue(scope, local), buffer_->component(scope, local), mine.elements());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = local == 0 ? mine[i] : sum(all[i], mine[i]);
    }
    if constexpr (sums)
      dist::detail::run_collectively(strategy, [&] { strategy.workers().all_reduce(sum, all.elements()); });
    return all;
  }
  /// See DistributedVariable::restore.
  void restore(const InCrossReplica auto& scope, TensorView<const Element> values) const {
    auto& strategy = scope.strategy();
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const bool has_values = !sums || strategy.first_local_replica() + local == 0;
      const auto queue = buffer_->queue(scope, local);
      if (has_values)
        queue.copy(values.elements(), buffer_->component(scope, local));
      else
        queue.fill(buffer_->component(scope, local), Element{});
      queue.wait();
    }
  }

 private:
  static constexpr bool sums = std::same_as<Aggregation, Sum>;

  const Buffer* buffer_;
};

}  // namespace dist::nn
