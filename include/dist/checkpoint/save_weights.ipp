#pragma once

#include <dist/checkpoint/save_weights.hpp>
#include <dist/checkpoint/weights_file.hpp>

namespace dist::detail {

DIST_INLINE void save_weights(const AnyStrategy& strategy, WalkLeaves walk, FunctionRef<void(const Snapshot&)> write) {
  strategy.run_collectively([&] {
    auto weights = Snapshot::of_first(strategy.is_chief());
    strategy.in_scope([&](const void* scope) {
      walk([&](std::string_view key, AnyLeaf& leaf, bool) { save_leaf(key, leaf, scope, weights); });
    });
    require_equal_numbers(strategy, weights.numbers());
    if (strategy.is_chief()) write(weights);
    strategy.barrier();  // no process reads the file before it exists
  });
}
DIST_INLINE void save_weights(const AnyStrategy& strategy, WalkLeaves walk, const std::string& path) {
  save_weights(strategy, walk, [&](const Snapshot& weights) { write_weights(path, weights.local_tensors()); });
}

}  // namespace dist::detail
