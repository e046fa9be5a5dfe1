#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/outputs.hpp>

namespace dist::nn {

/// What one replica needs to compute a network: its layers' operations and the memory between them, with the back end's
/// state. See Chain.
template <class Net, class Backend, class T, GradientStorage Storage = StoredGradients>
class Workspace {
  using Where = typename Backend::Device::Space;
  using Queue = typename Backend::Device::Queue;

 public:
  /// For back ends whose replicas need no queue.
  Workspace() requires(Where::host_accessible) : Workspace(Queue{}) {}
  /// For the replica that owns the queue.
  explicit Workspace(const Queue& queue) : queue_(queue), state_(make_state(queue)) {}

  /// The output of the network for `x`, a batch with rows of the network's input shape. `x` and `parameters` must stay
  /// as they are until `backward`, and x until gradients are applied where they are not stored. `pass` is a ForwardPass
  /// where a layer uses the replica. `before_use(elements)` is called before the parameters of a layer are read.
  template <class Pass = NoReplica, class BeforeUse = NoOp>
  [[nodiscard]] Outputs<T, Where> forward(SpanIn<const T, Where> parameters, TensorView<const T, Where> x,
                                          const Pass& pass = {}, const BeforeUse& before_use = {}) {
    has_batches_ = false;
    [[maybe_unused]] const auto entered = state_.enter();
    return chain_.forward(queue_, state_, parameters.data(), x, pass, before_use);
  }

  /// Computes, from the gradient in the place that `forward` returned, the gradients of all parameters, which are
  /// overwritten. `replica` is the replica's context where a layer uses it. `when_ready(elements)` is called when a
  /// part of the gradients is final: of one layer or of several, from the last to the first.
  template <class Replica = NoReplica, class WhenReady = NoOp>
  void backward(SpanIn<const T, Where> parameters, SpanIn<T, Where> gradients, const Replica& replica = {},
                WhenReady&& when_ready = {}) {
    has_batches_ = false;
    {
      [[maybe_unused]] const auto entered = state_.enter();
      chain_.template backward<false>(queue_, state_, parameters.data(), gradients.data(), replica, when_ready);
    }
    has_batches_ = true;
  }

  /// The factors of a kernel gradient that is not stored, valid from `backward` to the next `forward`.
  template <std::size_t Index>
  [[nodiscard]] kernels::DenseBatch<T> dense_batch() {
    return chain_.template dense_batch<Index>();
  }
  [[nodiscard]] bool has_batches() const noexcept { return has_batches_; }

 private:
  using State = typename Backend::State;

  [[nodiscard]] static State make_state(const Queue& queue) {
    if constexpr (std::constructible_from<State, const Queue&>)
      return State(queue);
    else
      return {};
  }

  [[no_unique_address]] Queue queue_;
  State state_;
  detail::Chain<Net, Backend, T, Storage> chain_;
  bool has_batches_ = false;
};

}  // namespace dist::nn
