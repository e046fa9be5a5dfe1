#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// A network for optimizers, such as nn::Network: `parameters()` is one variable, and `gradients()` a buffer or
/// variable of the same size with each replica's gradients. A network may also have
///
/// - `take_gradients(replica)`: returns the replica's gradients, once for each `backward` (TakesGradients);
/// - `stores_gradients`: true if all gradients are in memory, which is the default; if false, also `reduce_and_apply`
///   and `update_shards`, as in nn::Network;
/// - `layout()`: a span of the names and places of its parameters, valid for the network's lifetime (HasLayout);
/// - `lifetime()`: a std::weak_ptr that expires with the network (HasLifetime);
/// - `has_gradients(replica)`: for each parameter of `layout()`, 1 if a `backward` gave it a gradient on this replica
///   since the last update, else 0 (MayLackGradients). Optimizers and nn::OverlappedAllReduce take the maximum over the
///   replicas. An update skips parameters without a gradient, and then sets all flags to 0.
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
template <std::size_t Inputs, std::size_t Units, class Activation, bool has_bias>
inline constexpr bool is_dense_geometry<DenseGeometry<Inputs, Units, Activation, has_bias>> = true;

/// A placed layer that is a matrix product, whose kernel gradient follows from its input and its output's gradient.
template <class Layer>
concept DenseLayer = requires {
  typename Layer::Geometry;
}
&&is_dense_geometry<typename Layer::Geometry>;

template <class Layer>
[[nodiscard]] constexpr bool activations_are_smaller(std::size_t batch) {
  if constexpr (DenseLayer<Layer>) {
    using Geometry = typename Layer::Geometry;
    const std::size_t rows = batch * (Layer::Output::elements / Geometry::units);
    return rows * (Geometry::inputs + Geometry::units) < Geometry::inputs * Geometry::units;
  }
  return false;
}

/// True if a network stores its gradients, as by default.
template <class Network>
inline constexpr bool stores_gradients = !requires {
  requires !Network::stores_gradients;
};

/// Returns a replica's gradients for a step.
template <class Network, class Replica>
[[nodiscard]] auto gradient_of(Network& network, const Replica& replica) {
  if constexpr (TakesGradients<Network, Replica>)
    return network.take_gradients(replica);
  else
    return network.gradients().component(replica);
}

/// Marks networks in which all parameters have a gradient.
struct EveryParameter {};
/// Returns flags of this replica's parameters with a gradient, or EveryParameter.
template <class Network, class Replica>
[[nodiscard]] auto parameters_with_gradients(Network& network, const Replica& replica) {
  if constexpr (MayLackGradients<Network, Replica>)
    return network.has_gradients(replica);
  else
    return EveryParameter{};
}
/// Makes the network discard unapplied gradients of its last `backward`.
template <class Network, class Replica>
void discard_gradients(Network& network, const Replica& replica) {
  static_cast<void>(gradient_of(network, replica));
  if constexpr (MayLackGradients<Network, Replica>) {
    const std::span<std::uint8_t> has_gradients = network.has_gradients(replica);
    std::fill(has_gradients.begin(), has_gradients.end(), std::uint8_t{0});
  }
}

/// The shards of a network that does not store its gradients, updated in its `reduce_and_apply`.
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

/// A policy for gradients until they are applied: `stores<Layer>` is true if the layer stores its kernel gradient.
template <class G>
concept GradientStorage = requires {
  { G::template stores<int> } -> std::convertible_to<bool>;
};

/// Each replica stores all its gradients, and they are reduced when applied. The default.
struct StoredGradients {
  template <class Layer>
  static constexpr bool stores = true;
};

/// Kernel gradients of large dense layers are never stored: each replica owns a part of the kernel, and computes its
/// gradient from the activations of all replicas when it applies it. The sum has the same terms in the order of the
/// replicas, so training is as synchronous as with stored gradients, up to rounding.
///
/// All replicas must be in one process; otherwise use StoredGradients.
///
/// `BatchPerReplica` selects the layers with smaller activations, BatchPerReplica x (inputs + units), than the kernel,
/// inputs x units. It is a hint: batches may have other sizes. ("Sufficient factors" of Xie, Kim, Zhou, Ho, Kumar, Yu,
/// Xing: "Distributed machine learning via sufficient factor broadcasting", 2015; here read in place, without
/// communication.)
template <std::size_t BatchPerReplica>
struct OwnerComputedGradients {
  static_assert(BatchPerReplica > 0,
                "nn::OwnerComputedGradients needs the number of examples in a replica's batch: give 1 or more");

  template <class Layer>
  static constexpr bool stores = !detail::activations_are_smaller<Layer>(BatchPerReplica);
};

}  // namespace dist::nn
