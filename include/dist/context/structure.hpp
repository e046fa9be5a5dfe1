/// Structures of values: tuples, pairs, arrays and optionals are split into members, so that a replica function can
/// return or accept several values (spec C03, F05, F06). Members of aggregates can be visited.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

namespace detail {

template <class T>
inline constexpr bool is_tuple = is_specialization<T, std::tuple> || is_specialization<T, std::pair>;
/// A structure of these members, of the same kind as `Like`.
template <class Like, class... Members>
struct StructureLike {
  using Type = std::tuple<Members...>;
};
template <class A, class B, class First, class Second>
struct StructureLike<std::pair<A, B>, First, Second> {
  using Type = std::pair<First, Second>;
};

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t Size>
inline constexpr bool is_array<std::array<T, Size>> = true;
template <class T>
inline constexpr bool is_optional = is_specialization<T, std::optional>;

}  // namespace detail

/// A structure that is regrouped member by member.
template <class T>
concept Structure = detail::is_tuple<std::remove_cv_t<T>> || detail::is_array<std::remove_cv_t<T>> ||
    detail::is_optional<std::remove_cv_t<T>>;

namespace detail {

template <class S, class Fn, std::size_t... I>
constexpr auto map_members(S& structure, Fn& fn, std::index_sequence<I...>) {
  if constexpr (is_array<std::remove_cv_t<S>>) {
    using Value = decltype(fn(structure[0]));
    return std::array<Value, sizeof...(I)>{fn(structure[I])...};
  } else {
    using Mapped = typename StructureLike<std::remove_cv_t<S>, decltype(fn(std::get<I>(structure)))...>::Type;
    return Mapped{fn(std::get<I>(structure))...};
  }
}

}  // namespace detail

/// Returns `fn(member)` for every member: an array for an array, a tuple for a tuple, a pair for a pair (of references
/// if `fn` returns them), an optional for an optional.
template <class S, class Fn>
  requires Structure<S>
[[nodiscard]] constexpr auto map_structure(S& structure, Fn&& fn) {
  if constexpr (detail::is_optional<std::remove_cv_t<S>>) {
    using Value = std::decay_t<decltype(fn(*structure))>;
    return structure ? std::optional<Value>{fn(*structure)} : std::optional<Value>{};
  } else {
    return detail::map_members(structure, fn, std::make_index_sequence<std::tuple_size_v<std::remove_cv_t<S>>>{});
  }
}

namespace detail {

/// Converts to any type, to count the initialisers of an aggregate.
struct AnyValue {
  template <class T>
  operator T() const;
};
template <class T, class... Initialisers>
concept InitialisedFrom = requires {
  T{Initialisers{}...};
};
template <std::size_t>
using AnyValueFor = AnyValue;
template <class T, std::size_t... I>
constexpr bool takes_initialisers(std::index_sequence<I...>) {
  return InitialisedFrom<T, AnyValueFor<I>...>;
}
/// Converts only to bases of T, which precede its members.
template <class T>
struct AnyBaseOf {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::same_as<Base, T>)
  operator Base() const;
};

inline constexpr std::size_t most_members = 8;
template <class T, std::size_t Count = most_members + 1>
constexpr std::size_t member_count() {
  if constexpr (Count == 0) {
    return 0;
  } else if constexpr (takes_initialisers<T>(std::make_index_sequence<Count>{})) {
    return Count;
  } else {
    return member_count<T, Count - 1>();
  }
}

}  // namespace detail

/// A plain struct of 1 to 8 members, without bases.
template <class T>
concept Aggregate = std::is_class_v<T> && std::is_aggregate_v<T> && !Structure<T> && detail::member_count<T>() > 0 &&
                    detail::member_count<T>() <= detail::most_members &&
                    !detail::InitialisedFrom<T, detail::AnyBaseOf<T>>;

/// Returns references to an aggregate's members, as a tuple.
template <class T>
  requires Aggregate<std::remove_const_t<T>>
[[nodiscard]] constexpr auto members_of(T& aggregate) {
  constexpr std::size_t count = detail::member_count<std::remove_const_t<T>>();
  if constexpr (count == 1) {
    auto& [a] = aggregate;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = aggregate;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = aggregate;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = aggregate;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = aggregate;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = aggregate;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = aggregate;
    return std::tie(a, b, c, d, e, f, g);
  } else {
    auto& [a, b, c, d, e, f, g, h] = aggregate;
    return std::tie(a, b, c, d, e, f, g, h);
  }
}

/// Calls `fn(member)` for every member of a structure or aggregate, and for an optional's value.
template <class S, class Fn>
  requires Structure<S> || Aggregate<S>
constexpr void for_each_member(S& structure, Fn&& fn) {
  if constexpr (detail::is_optional<std::remove_cv_t<S>>) {
    if (structure) fn(*structure);
  } else if constexpr (Structure<S>) {
    std::apply([&](auto&... members) { (fn(members), ...); }, structure);
  } else {
    std::apply([&](auto&... members) { (fn(members), ...); }, members_of(structure));
  }
}

namespace detail {

/// Returns a fingerprint of the number of members of T and their nesting; 0 for other types. A PerReplica counts as its
/// value.
template <class T>
[[nodiscard]] constexpr std::uint64_t structure_of() {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  using Plain = std::remove_cvref_t<T>;
  if constexpr (is_per_replica<Plain>) {
    return structure_of<typename Plain::Value>();
  } else if constexpr (is_optional<Plain>) {
    return (structure_of<typename Plain::value_type>() + 2) * odd;
  } else if constexpr (Structure<Plain>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      std::uint64_t form = sizeof...(I) + 3;
      ((form = (form ^ structure_of<std::tuple_element_t<I, Plain>>()) * odd), ...);
      return form;
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>{});
  } else if constexpr (Aggregate<Plain>) {
    return structure_of<decltype(members_of(std::declval<const Plain&>()))>() + 1;
  } else {
    return 0;
  }
}

/// True if values of type T hold optionals, and so may differ in form.
template <class T>
[[nodiscard]] constexpr bool holds_optional() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (is_per_replica<Plain>) {
    return holds_optional<typename Plain::Value>();
  } else if constexpr (is_optional<Plain>) {
    return true;
  } else if constexpr (Structure<Plain>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (holds_optional<std::tuple_element_t<I, Plain>>() || ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>{});
  } else if constexpr (Aggregate<Plain>) {
    return holds_optional<decltype(members_of(std::declval<const Plain&>()))>();
  } else {
    return false;
  }
}

/// Calls `use(has_value)` for every optional in `value`, outer ones first.
template <class T, class Use>
constexpr void for_each_optional(const T& value, Use&& use) {
  if constexpr (holds_optional<T>() && !is_per_replica<T>) {
    if constexpr (is_optional<T>) use(value.has_value());
    for_each_member(value, [&](const auto& member) { for_each_optional(member, use); });
  }
}

}  // namespace detail

/// Converts per-replica structures to structures of per-replica values, recursively: `PerReplica<std::tuple<A, B>>`
/// to `std::tuple<PerReplica<A>, PerReplica<B>>`, pairs to pairs. Other types are unchanged (spec C03, F05). Throws
/// ShapeMismatch if an optional has a value on some replicas only.
template <class T>
[[nodiscard]] auto regroup(PerReplica<T>&& values);

namespace detail {

template <class T, std::size_t... I>
auto regroup_members(PerReplica<T>& values, std::index_sequence<I...>) {
  const auto member = [&]<std::size_t Index>() {
    using Member = std::tuple_element_t<Index, T>;
    return regroup(PerReplica<Member>(
        values.size(), [&](std::size_t replica) -> Member&& { return std::move(std::get<Index>(values[replica])); }));
  };
  if constexpr (is_array<T>) {
    using Value = decltype(member.template operator()<0>());
    return std::array<Value, sizeof...(I)>{member.template operator()<I>()...};
  } else {
    using Regrouped = typename StructureLike<T, decltype(member.template operator()<I>())...>::Type;
    return Regrouped{member.template operator()<I>()...};
  }
}

}  // namespace detail

template <class T>
[[nodiscard]] auto regroup(PerReplica<T>&& values) {
  if constexpr (detail::is_optional<T>) {
    using Value = typename T::value_type;
    using Regrouped = decltype(regroup(std::declval<PerReplica<Value>>()));
    for (std::size_t replica = 1; replica < values.size(); ++replica)
      if (values[replica].has_value() != values[0].has_value())
        throw ShapeMismatch("The replicas' results differ in structure",
                            concat("replica ", values[0] ? 0 : replica, " returned an optional with a value, replica ",
                                   values[0] ? replica : 0, " one without"),
                            "Return a value on every replica or on none");
    if (values.size() == 0 || !values[0]) return std::optional<Regrouped>{};
    return std::optional<Regrouped>{regroup(
        PerReplica<Value>(values.size(), [&](std::size_t replica) -> Value&& { return std::move(*values[replica]); }))};
  } else if constexpr (Structure<T>) {
    return detail::regroup_members(values, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return PerReplica<T>{std::move(values)};
  }
}

}  // namespace dist
