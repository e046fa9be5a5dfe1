// Explores all orders of the steps of several members, for protocols that are tested without threads.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace support {

/// Explores all states that are reachable from `system`. A System is a value with
/// - `steps()`: the number of different next steps; 0 at the end,
/// - `take(step)`: executes one step,
/// - `key()`: equal for systems with the same future behaviour, which are explored once,
/// - `check()`: checks the final state.
///
/// Returns the number of different states.
template <class System>
std::size_t explore(const System& system) {
  std::set<decltype(system.key())> known;
  std::vector<System> open;
  const auto add = [&](System found) {
    if (known.insert(found.key()).second) open.push_back(std::move(found));
  };
  add(system);
  while (!open.empty()) {
    System next = std::move(open.back());
    open.pop_back();
    const std::size_t steps = next.steps();
    if (steps == 0) next.check();
    for (std::size_t step = 0; step < steps; ++step) {
      System after = step + 1 < steps ? next : std::move(next);
      after.take(step);
      add(std::move(after));
    }
  }
  return known.size();
}

}  // namespace support
