#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist::nn {

/// The layers' state, such as moving statistics: one variable that each replica changes independently in training, and
/// whose value outside replica functions is the mean of the copies (spec P19). In float for 16-bit networks, which no
/// back end supports yet, because small steps of a moving average would vanish.
template <class Net, class T, class Device>
class NetworkState {
 public:
  /// The type of the state: float for 16-bit networks.
  using Element = Accumulator<T>;
  /// The variable with the state of all layers.
  using Variable = DistributedVariable<Element, OnRead, Mean, Device>;
  /// A replica's state for reading.
  using ConstSpan = typename Device::template Span<const Element>;

  /// Throws OutOfMemory.
  template <Strategy S>
  explicit NetworkState(S& strategy, std::uint64_t seed = 0)
      : variable_(dist::detail::variable_of_tensors<Element, OnRead, Mean>(
            strategy, Shape{Net::padded_state_count},
            [seed](TensorView<Element> all) { Net::initialize_state(all, seed); }, "state", Net::state)),
        own_(strategy.template buffer<Element>(Shape{Net::padded_state_count}, "state of a step")) {}

  /// The state of all layers, for reading and checkpoints.
  [[nodiscard]] Variable& variable() noexcept { return variable_; }

  /// Returns a replica's state.
  [[nodiscard]] ConstSpan read(const InReplica auto& replica) const { return variable_.read(replica).elements(); }

  /// Calls `change(state)` to change the replica's state in place, and returns its result. If replicas share a copy, it
  /// becomes the mean of their states: a collective call.
  template <InReplica Replica, class Change>
  auto update(const Replica& replica, Change&& change) {
    return StoreOf<Replica>::update_local_then_average(replica, variable_.component(replica), own_.component(replica),
                                                       std::forward<Change>(change));
  }

 private:
  Variable variable_;
  ReplicaBuffer<Element, Device> own_;  // used only if replicas share a copy
};

/// The empty state of networks without any.
template <class Net, class T, class Device>
  requires(Net::state_count == 0)
class NetworkState<Net, T, Device> {
 public:
  /// The type that a state would have.
  using Element = Accumulator<T>;

  /// An empty span.
  using Span = typename Device::template Span<Element>;
  /// An empty span.
  using ConstSpan = typename Device::template Span<const Element>;

  /// Takes the same arguments as the state of other networks.
  template <Strategy S>
  explicit NetworkState(S&, std::uint64_t = 0) {}

  /// Returns an empty span.
  [[nodiscard]] ConstSpan read(const InReplica auto&) const { return {}; }
  /// Calls `change` with an empty span, and returns its result.
  template <class Change>
  auto update(const InReplica auto&, Change&& change) {
    return change(Span{});
  }
};

}  // namespace dist::nn
