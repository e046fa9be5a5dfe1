#pragma once

#include <string>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/track.hpp>

namespace dist {

namespace detail {
/// Calls `write` with the weights, in the first process.
void save_weights(const AnyStrategy& strategy, WalkLeaves walk, FunctionRef<void(const Snapshot&)> write);
void save_weights(const AnyStrategy& strategy, WalkLeaves walk, const std::string& path);
}  // namespace detail

/// Writes the parts of `tracked`, such as a network's parameters and layer states, to a file for other programs, by the
/// keys of the walk ("dense_1/kernel") and in the layouts of the layers:
///
///     dist::save_weights(strategy, network, "weights.safetensors");
///
/// The format follows from the extension: .safetensors or .npz. The first process replaces the file atomically
/// (AtomicFile); all return once it exists. A collective call of the processes, outside replica functions. Throws
/// FileError, InvalidArgument for other extensions, and PeerError if another process failed. To resume a run, use
/// Checkpoint.
template <Strategy S, class Tracked>
void save_weights(S& strategy, Tracked& tracked, const std::string& path) {
  if constexpr (detail::require_tracked<Tracked>())
    detail::save_weights(detail::AnyStrategyOf<S>{strategy}, detail::walk_of<decltype(strategy.scope())>(tracked),
                         path);
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/save_weights.ipp>
#endif
