#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// What an optimizer trains: `parameters()` is one variable, `gradients()` a buffer or a variable of as many elements with
/// each replica's gradients. nn::Network is one. A network may also have
///
/// - `take_gradients(replica)`: the replica's gradients, once for each `backward` (TakesGradients);
/// - `stores_gradients`: whether all of them are in memory, as they are where nothing is said; where it is
///   false, `reduce_and_apply` and `update_shards` as nn::Network has them;
/// - `layout()`: a span of its parameters' names and places, which stay where they are as long as it lives (HasLayout);
/// - `lifetime()`: a std::weak_ptr that expires with it (HasLifetime);
/// - `has_gradients(replica)`: for each parameter of `layout()`, 1 if a `backward` gave it a gradient on this replica since
///   the last update, else 0 (MayLackGradients). Optimizers and nn::OverlappedAllReduce make that the maximum over the
///   replicas. An update leaves a parameter without a gradient as it is, and then sets all to 0.
template <class N>
concept TrainableNetwork = requires(N& network) {
  typename std::remove_cvref_t<decltype(network.parameters())>::Element;
  network.gradients();
};
template <class N, class Replica>
concept TakesGradients = requires(N& network, const Replica& replica) {
  network.take_gradients(replica);
};
template <class N, class Replica>
concept MayLackGradients = requires(N& network, const Replica& replica) {
  { network.has_gradients(replica) } -> std::same_as<std::span<std::uint8_t>>;
};
template <class N>
concept HasLayout = requires(const N& network) {
  network.layout();
};
template <class N>
concept HasLifetime = requires(const N& network) {
  network.lifetime();
};

namespace detail {

template <class Geometry>
inline constexpr bool is_dense_geometry = false;
template <std::size_t Inputs, std::size_t Units, class Activation>
inline constexpr bool is_dense_geometry<DenseGeometry<Inputs, Units, Activation>> = true;

/// A layer in its place that is a matrix product: its kernel's gradient follows from its input and the gradient of its
/// output.
template <class Layer>
concept DenseLayer = requires {
  typename Layer::Geometry;
}
&&is_dense_geometry<typename Layer::Geometry>;

template <class Layer>
[[nodiscard]] constexpr bool activations_are_smaller(std::size_t batch) {
  if constexpr (DenseLayer<Layer>) {
    using Geometry = typename Layer::Geometry;
    return batch * (Geometry::inputs + Geometry::units) < Geometry::inputs * Geometry::units;
  }
  return false;
}

/// Whether a network stores its gradients; networks other than nn::Network do.
template <class Network>
inline constexpr bool stores_gradients = !requires {
  requires !Network::stores_gradients;
};

/// What a replica brings to a step.
template <class Network, class Replica>
[[nodiscard]] auto gradient_of(Network& network, const Replica& replica) {
  if constexpr (TakesGradients<Network, Replica>)
    return network.take_gradients(replica);
  else
    return network.gradients().component(replica);
}

/// All parameters have a gradient.
struct EveryParameter {};
/// The parameters that have a gradient on this replica, of a network that may lack some.
template <class Network, class Replica>
[[nodiscard]] auto parameters_with_gradients(Network& network, const Replica& replica) {
  if constexpr (MayLackGradients<Network, Replica>)
    return network.has_gradients(replica);
  else
    return EveryParameter{};
}
/// Lets the network forget the gradients of its last `backward`, which are not applied.
template <class Network, class Replica>
void discard_gradients(Network& network, const Replica& replica) {
  static_cast<void>(gradient_of(network, replica));
  if constexpr (MayLackGradients<Network, Replica>) {
    const std::span<std::uint8_t> has_gradients = network.has_gradients(replica);
    std::fill(has_gradients.begin(), has_gradients.end(), std::uint8_t{0});
  }
}
/// Throws what an optimizer reports where it finds no gradients that were not applied yet.
[[noreturn]] inline void refuse_gradients(const InReplica auto& replica, bool has_computed, const char* advice) {
  throw InvalidArgument(
      "A network's gradients were to be applied, and there are none",
      concat("replica ", replica.replica_id().index(),
             has_computed ? " has applied those of its last backward already" : " has called no backward yet"),
      advice);
}

/// The owners of a network's elements, where it computes with them: those that update them in its `reduce_and_apply`.
template <class Network>
struct OwnersInNetwork : OnShard {
  template <class T>
  static void update_shards(const auto& replica, std::span<const T> given, std::span<T> values, const auto& update) {
    Network::update_shards(replica, given, values, update);
  }
};
template <class Network>
using OwnersOf = std::conditional_t<stores_gradients<Network>, OnShard, OwnersInNetwork<Network>>;

}  // namespace detail

/// Where a network's gradients are before they are applied: which layers store the gradient of their kernel.
template <class G>
concept GradientStorage = requires {
  { G::template stores<int> } -> std::convertible_to<bool>;
};

/// Every gradient is stored by the replica that computed it, and reduced over the replicas when it is applied. The
/// default.
struct StoredGradients {
  template <class Layer>
  static constexpr bool stores = true;
};

/// The kernel gradients of large dense layers are never stored: each replica owns a part of the kernel, and computes
/// the gradient of that part from the activations of all replicas when it applies it. For each owner that is a part of
/// the same sum in the order of the replicas, so training is as synchronous as with stored gradients, up to rounding.
///
/// The replicas must be in one address space: with several processes use StoredGradients.
///
/// `BatchPerReplica` decides which layers: those where a batch of activations, BatchPerReplica x (inputs + units), is
/// smaller than the kernel, inputs x units. It is a hint; batches may be of other sizes. ("Sufficient factors" of Xie,
/// Kim, Zhou, Ho, Kumar, Yu, Xing: "Distributed machine learning via sufficient factor broadcasting", 2015; here they
/// are read where they are, and nothing is sent.)
template <std::size_t BatchPerReplica>
struct OwnerComputedGradients {
  static_assert(BatchPerReplica > 0, "nn::OwnerComputedGradients needs the number of examples of a replica's batch");

  template <class Layer>
  static constexpr bool stores = !detail::activations_are_smaller<Layer>(BatchPerReplica);
};

}  // namespace dist::nn
