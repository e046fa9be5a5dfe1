#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/structure.hpp>
#include <dist/coordinator/remote_result.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>

namespace dist {

/// The result of a scheduled function, which may not be there yet (spec L08). Copies share the result. Once the
/// function has ended its result is at the coordinator, and outlives the worker and the coordinator.
template <class T>
class RemoteValue {
 public:
  using Value = T;

  /// Belongs to no function, and can only be assigned to.
  RemoteValue() = default;
  explicit RemoteValue(std::shared_ptr<detail::RemoteResult> result) : result_(std::move(result)) {}

  /// Waits for the result. Throws RemoteError, which has the type and the text of what the function threw, Cancelled
  /// where it did not run or nobody knows how far it came, and Unavailable where what it needs is lost. Without a
  /// `timeout` it waits as long as the function takes; else it throws DeadlineExceeded, and may be called again.
  T fetch() const { return fetch_until({}); }
  T fetch(std::chrono::nanoseconds timeout) const { return fetch_until(detail::RemoteResult::Clock::now() + timeout); }

  /// What has become of the function so far.
  [[nodiscard]] RemoteState state() const { return result().state(); }

 private:
  T fetch_until(std::optional<detail::RemoteResult::Clock::time_point> until) const {
    const std::span<const std::byte> bytes = result().wait(until);
    if constexpr (!std::is_void_v<T>) return from_bytes<T>(bytes, "The result of a scheduled function");
  }
  [[nodiscard]] const detail::RemoteResult& result() const {
    if (!result_)
      throw InvalidArgument("A RemoteValue has no function", "it was made without one, and nothing was assigned to it",
                            "Assign what schedule returns");
    return *result_;
  }

  std::shared_ptr<detail::RemoteResult> result_;
};

namespace detail {

template <class T>
inline constexpr bool is_remote_value = is_specialization<std::remove_cvref_t<T>, RemoteValue>;

/// Whether a value of type T is or has a RemoteValue. `Outer` are the types around it, which may be lists of
/// themselves.
template <class T, class... Outer>
[[nodiscard]] constexpr bool holds_remote_value() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (is_remote_value<Plain>) {
    return true;
  } else if constexpr ((std::is_same_v<Plain, Outer> || ...)) {
    return false;
  } else if constexpr (is_specialization<Plain, std::vector> || is_optional<Plain>) {
    return holds_remote_value<typename Plain::value_type, Plain, Outer...>();
  } else if constexpr (Structure<Plain>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (holds_remote_value<std::tuple_element_t<I, Plain>, Plain, Outer...>() || ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>{});
  } else if constexpr (Aggregate<Plain>) {
    return holds_remote_value<decltype(members_of(std::declval<Plain&>())), Plain, Outer...>();
  } else {
    return false;
  }
}

}  // namespace detail

/// The values of all RemoteValues in a structure, in the same structure: of lists a list, of tuples a tuple, and so on
/// inside; what is no RemoteValue stays as it is (spec L07). Waits and throws as `fetch` of each does, in their order.
template <class T>
[[nodiscard]] auto fetch(const T& structure) {
  if constexpr (detail::is_remote_value<T>) {
    static_assert(!std::is_void_v<typename T::Value>,
                  "a RemoteValue<void> has no value that could stand in a structure: call its own fetch()");
    return structure.fetch();
  } else if constexpr (!detail::holds_remote_value<T>()) {
    return structure;
  } else if constexpr (detail::is_specialization<T, std::vector>) {
    std::vector<decltype(fetch(structure[0]))> values;
    values.reserve(structure.size());
    for (const auto& element : structure) values.push_back(fetch(element));
    return values;
  } else if constexpr (Structure<T>) {
    return map_structure(structure, [](const auto& member) { return fetch(member); });
  } else {
    static_assert(!detail::holds_remote_value<T>(),
                  "a plain struct cannot get other members: fetch its RemoteValues one by one, or put them into a "
                  "std::tuple");
    return detail::refused<T>();
  }
}

}  // namespace dist
