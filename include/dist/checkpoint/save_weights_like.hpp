#pragma once

#include <string>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/track.hpp>

namespace dist {

/// Writes the parts of `tracked` to a file that another program loads in place of the safetensors file `like`, which
/// load_weights reads with these options:
///
///     dist::load_weights(strategy, network, "model.safetensors", options);
///     dist::save_weights_like(strategy, network, "tuned.safetensors", "model.safetensors", options);
///
/// The file has the names, layouts, element types and metadata of `like`, and its values where `tracked` has none. A
/// collective call of the processes, outside replica functions. Throws the exceptions of load_weights and save_weights,
/// and InvalidArgument if `like` is an NPZ file or an element does not fit its type.
template <Strategy S, class Tracked>
void save_weights_like(S& strategy, Tracked& tracked, const std::string& path, const std::string& like,
                       const LoadWeightsOptions& options = {}) {
  if constexpr (detail::require_tracked<Tracked>())
    detail::save_weights(
        detail::AnyStrategyOf<S>{strategy}, detail::walk_of<decltype(strategy.scope())>(tracked),
        [&](const detail::Snapshot& weights) { detail::write_weights_like(like, options, path, weights); });
}

}  // namespace dist
