#pragma once

#include <string>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/track.hpp>

namespace dist {

/// Options of save_weights.
struct SaveWeightsOptions {
  /// A safetensors file of another program, with all its tensors; empty for a file with our keys and layouts. The saved
  /// file has the names, layouts and element types of that file, and its values where the network has none.
  std::string like = {};
  /// The options for load_weights of that file.
  LoadWeightsOptions loaded_by = {};
};

namespace detail {
void save_weights(const AnyStrategy& strategy, WalkLeaves walk, const std::string& path,
                  const SaveWeightsOptions& options);
}

/// Writes the parts of `tracked`, such as a network's parameters and layer states, to a file for other programs, by the
/// keys of the walk ("dense_1/kernel") and in the layouts of the layers:
///
///     dist::save_weights(strategy, network, "weights.safetensors");
///
/// With the file and the options that load_weights got, the other program can load the new file in its place:
///
///     dist::save_weights(strategy, network, "tuned.safetensors", {.like = "model.safetensors", .loaded_by = options});
///
/// The format follows from the extension: .safetensors or .npz. The first process replaces the file atomically
/// (AtomicFile); all return once it exists. A collective call of the processes, outside replica functions. Throws
/// FileError, InvalidArgument for other extensions, PeerError if another process failed, and the exceptions of
/// load_weights if the network does not fit the file. To resume a run, use Checkpoint.
template <Strategy S, class Tracked>
void save_weights(S& strategy, Tracked& tracked, const std::string& path, const SaveWeightsOptions& options = {}) {
  if constexpr (detail::require_tracked<Tracked>())
    detail::save_weights(detail::AnyStrategyOf<S>{strategy}, detail::walk_of<decltype(strategy.scope())>(tracked), path,
                         options);
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/save_weights.ipp>
#endif
