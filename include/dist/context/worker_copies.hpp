#pragma once

#include <concepts>
#include <cstdint>

#include <dist/context/strategy.hpp>

namespace dist {

/// Records the variables that an object's constructor creates on a strategy with a RemoteStore. Must be its first
/// member, to be constructed before them.
class VariablesMade {
 public:
  /// Starts to record the variables of `strategy`, which must outlive the object.
  template <class S>
  explicit VariablesMade([[maybe_unused]] S& strategy) {
    if constexpr (RemoteStore<typename S::Store>) {
      strategy_ = &strategy;
      first_ = strategy.variable_cache().count();
    }
  }

  /// The strategy, or null.
  [[nodiscard]] const void* strategy() const noexcept { return strategy_; }
  /// The number of the first of these variables.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }

 private:
  const void* strategy_ = nullptr;
  std::uint64_t first_ = 0;
};

/// An object that scheduled functions may take: each worker creates a copy once, with the same constructor, which
/// shares the variables of the coordinator's object. `variables_made()` records these variables. `arguments()` is a
/// std::tuple of the constructor's arguments after the strategy; other objects with copies are held by reference.
template <class X>
concept HasWorkerCopies = requires(const X& object) {
  { object.variables_made() } -> std::same_as<const VariablesMade&>;
  object.arguments();
};

}  // namespace dist
