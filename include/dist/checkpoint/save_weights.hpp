#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/checkpoint/weights_file.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/track.hpp>

namespace dist {

/// Writes all that `tracked` names, such as the parameters of a network and what its layers keep, as one file for other
/// programs, under the keys of the walk ("dense_1/kernel") and in the layouts of the layers:
///
///     dist::save_weights(strategy, network, "weights.safetensors");
///
/// The end of the name says the format: .safetensors or .npz. The file is replaced as AtomicFile does, by the first process;
/// all return when it is there. A collective call of the processes, outside replica functions. Throws FileError, and
/// InvalidArgument for a name of another kind; PeerError for what failed in another process. See Checkpoint for what is to
/// go on with a run.
template <Strategy S, class Tracked>
void save_weights(S& strategy, Tracked& tracked, const std::string& path) {
  if constexpr (detail::require_tracked<Tracked>()) {
    detail::run_collectively(strategy, [&] {
      auto weights = detail::Snapshot::of_first(strategy.is_chief());
      auto scope = strategy.scope();
      walk(tracked, [&](std::string_view key, auto& leaf) { detail::save_leaf(key, leaf, scope, weights); });
      detail::require_equal_numbers(strategy.workers(), weights.numbers());
      if (strategy.is_chief()) detail::write_weights(path, weights);
      strategy.workers().communicator().barrier();  // nobody reads it before it is there
    });
  }
}

}  // namespace dist
