#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/branches.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// Passes the output and its gradient on.
struct OnlyBranch {
  template <class T, std::size_t>
  static void join(const auto& queue, const auto& outputs, auto y) {
    queue.copy(outputs[0].elements(), y.elements());
  }
  template <std::size_t>
  static void part(const auto& queue, const auto&, auto dy, auto gradient) {
    queue.copy(dy.elements(), gradient.elements());
  }
};

/// Computes the layers again in `backward`. All their memory is scratch.
template <class Of, class Backend, class T>
class RecomputedOperation : public BranchesOperation<Of, Backend, T, OnlyBranch> {
  using Base = BranchesOperation<Of, Backend, T, OnlyBranch>;
  using State = typename Backend::State;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  template <class Element>
  using Views = ParameterViewsOn<Backend, Element, Of::parameters.size()>;

 public:
  template <bool InputGradient, bool ParameterGradients = true>
  void backward(State& state, View<const T> x, const Views<const T>& parameters, View<const T> y, View<T> dy,
                const Views<T>& gradients, View<T> dx) {
    this->compute(NoReplica{}, state, x, parameters);
    Base::template backward<InputGradient, ParameterGradients>(state, x, parameters, y, dy, gradients, dx);
  }
  void swap_scratch(RecomputedOperation& other) { std::swap(*this, other); }
};

}  // namespace detail

/// A layer, a Sequential or a block with `Layers<In>` whose outputs between its layers are not kept: `backward` computes
/// them again from the input (Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016). The
/// bits of outputs and gradients are the same, except after an activation at the end, as with Repeat. A step computes a
/// third more. The blocks of
/// `Repeat<12, Recomputed<Block>>` share the memory for these outputs, so each keeps one output.
///
/// The layers do not use the replica. Parameters have the same names without Recomputed.
template <class L>
struct Recomputed {
  /// The bound layer.
  template <class In>
  struct On : detail::Branches<In, L> {
    static_assert(!detail::NetworkOn<In, L>::uses_replica,
                  "nn::Recomputed computes its layers twice in a step, so it takes no layers with random numbers or "
                  "statistics, such as nn::Dropout and nn::BatchNormalization: put these outside");
    using Layer = Recomputed;
    using Output = typename detail::NetworkOn<In, L>::OutputShape;
    static constexpr std::string_view name = "recomputed";

    template <class Backend, class T>
    using Operation = detail::RecomputedOperation<On, Backend, T>;
  };
};

}  // namespace dist::nn
