#pragma once

#include <concepts>
#include <cstdint>

#include <dist/context/strategy.hpp>

namespace dist {

/// Notes which variables of a strategy with a RemoteStore the constructor of an object makes. As its first member it is there before
/// them. Other strategies are not noted.
class VariablesMade {
 public:
  template <class S>
  explicit VariablesMade([[maybe_unused]] S& strategy) {
    if constexpr (RemoteStore<typename S::Store>) {
      strategy_ = &strategy;
      first_ = strategy.variable_cache().count();
    }
  }

  /// The strategy, or null.
  [[nodiscard]] const void* strategy() const noexcept { return strategy_; }
  /// The number of the first of them among the variables of the strategy.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }

 private:
  const void* strategy_ = nullptr;
  std::uint64_t first_ = 0;
};

/// An object on a strategy that scheduled functions take: each worker makes a copy of it once, by the same constructor, whose
/// variables are those of the coordinator's. `arguments()` is a std::tuple of what the constructor got after the strategy; of another
/// object with copies a reference.
template <class X>
concept HasWorkerCopies = requires(const X& object) {
  { object.variables_made() } -> std::same_as<const VariablesMade&>;
  object.arguments();
};

}  // namespace dist
