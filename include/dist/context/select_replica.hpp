#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <dist/context/per_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

template <class T>
inline constexpr bool holds_per_replica = is_per_replica<T>;
template <class... Ts>
inline constexpr bool holds_per_replica<std::tuple<Ts...>> = (holds_per_replica<std::remove_cvref_t<Ts>> || ...);
template <class A, class B>
inline constexpr bool holds_per_replica<std::pair<A, B>> =
    holds_per_replica<std::remove_cvref_t<A>> || holds_per_replica<std::remove_cvref_t<B>>;
template <class T, std::size_t Size>
inline constexpr bool holds_per_replica<std::array<T, Size>> = holds_per_replica<T>;
template <class T>
inline constexpr bool holds_per_replica<std::optional<T>> = holds_per_replica<T>;

}  // namespace detail

/// What local replica `index` receives of an argument of `run` (spec C01, F06): its own value of a PerReplica; of a
/// structure that holds some the structure of its values, by reference in a tuple, by value in an array or an optional;
/// anything else whole.
template <class Argument>
[[nodiscard]] constexpr decltype(auto) select_replica([[maybe_unused]] std::size_t index, Argument& argument) {
  using Plain = std::remove_cv_t<Argument>;
  if constexpr (is_per_replica<Plain>) {
    return (argument[index]);
  } else if constexpr (Structure<Plain> && detail::holds_per_replica<Plain>) {
    if constexpr (detail::is_tuple<Plain>) {
      return map_structure(argument, [&](auto& member) -> decltype(auto) { return select_replica(index, member); });
    } else {
      return map_structure(argument, [&](auto& member) { return select_replica(index, member); });
    }
  } else {
    return (argument);
  }
}

/// The same by value, also inside structures.
template <class Value>
[[nodiscard]] constexpr auto select_copy([[maybe_unused]] std::size_t index, const Value& value) {
  if constexpr (is_per_replica<Value>) {
    return typename Value::Value(value[index]);
  } else if constexpr (Structure<Value> && detail::holds_per_replica<Value>) {
    return map_structure(value, [&](const auto& member) { return select_copy(index, member); });
  } else {
    return Value(value);
  }
}

/// Throws WrongStrategy when `argument`, which `giver` gave, holds values of another number of replicas than
/// `replicas`.
template <class Argument>
void require_value_per_replica([[maybe_unused]] std::size_t replicas, [[maybe_unused]] const Argument& argument,
                               [[maybe_unused]] std::string_view giver = "run was given") {
  if constexpr (is_per_replica<Argument>) {
    if (argument.size() != replicas)
      throw WrongStrategy(concat(giver, " per-replica values of another strategy"),
                          concat(argument.size(), " values for ", replicas, " replicas"),
                          "Use what this strategy's run or distribute_dataset returned");
  } else if constexpr (detail::is_optional<Argument> && detail::holds_per_replica<Argument>) {
    if (argument) require_value_per_replica(replicas, *argument, giver);
  } else if constexpr (detail::holds_per_replica<Argument>) {
    std::apply([&](const auto&... members) { (require_value_per_replica(replicas, members, giver), ...); }, argument);
  }
}

}  // namespace dist
