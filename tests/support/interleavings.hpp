// All orders in which the steps of several members can happen, for protocols that are tested without threads.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace support {

/// Explores `system` and all that it can become. A System is a value with
/// - `steps()`: how many different steps can happen next; none where it is over,
/// - `take(step)`: lets one happen,
/// - `key()`: equal for systems that behave the same from here on, so that each is explored once,
/// - `check()`: called where it is over.
/// Returns how many different systems there are.
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
