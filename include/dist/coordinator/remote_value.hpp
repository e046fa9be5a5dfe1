#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/structure.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>

namespace dist {

/// Error for a scheduled function without result or failure: it was removed from the queue, or its outcome is unknown
/// (spec L05, L08).
class Cancelled : public Error {
 public:
  /// `problem` says what was cancelled, `why` the cause.
  Cancelled(std::string_view problem, std::string_view why)
      : Error(problem, why, "Schedule the function again if its result is wanted") {}

  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }
};

/// Error for a scheduled function that threw on a worker, or could not start there.
class RemoteError : public Error {
 public:
  /// `thrown` is the type of the exception, and empty if the function could not start; `why` is its text.
  RemoteError(std::size_t worker, std::string_view address, std::string_view function, std::string_view thrown,
              std::string_view why)
      : Error(concat("A scheduled function failed on worker ", worker, " at ", address),
              concat(function, " threw ", thrown.empty() ? "an error" : thrown), concat("Its message: ", why)),
        worker_(worker),
        thrown_(thrown),
        why_(why) {}

  /// The index of the worker that ran the function.
  [[nodiscard]] std::size_t worker() const noexcept { return worker_; }
  /// The type of the exception; empty if the function could not start.
  [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }
  /// The text of the exception.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  std::size_t worker_;
  std::string thrown_;
  std::string why_;
};

/// State of a scheduled function (spec L08).
enum class RemoteState : std::uint8_t {
  not_ready,  ///< waits for a worker, or runs
  ready,      ///< the result is available
  failed,     ///< the function threw, or has lost a resource that it needs
  cancelled,  ///< did not run, or stopped, after another's failure or at the coordinator's end
  aborted,    ///< started, but its outcome is unknown, because the coordinator ended
};

/// Returns the name of a state for messages.
[[nodiscard]] std::string_view to_string_view(RemoteState state);

namespace detail {

/// The result of a scheduled function as bytes, shared by the closure and its RemoteValues, at the coordinator.
/// Thread-safe.
class RemoteResult {
 public:
  using Clock = std::chrono::steady_clock;

  /// The first of several outcomes counts.
  void finish(std::vector<std::byte> bytes);
  /// Stores a failure. `state` is failed, cancelled or aborted.
  void fail(RemoteState state, std::exception_ptr error);

  [[nodiscard]] RemoteState state() const noexcept { return state_.load(std::memory_order_acquire); }

  /// Waits for the outcome. The returned bytes do not change any more. Throws the error of the function, or
  /// DeadlineExceeded after `until`.
  [[nodiscard]] std::span<const std::byte> wait(std::optional<Clock::time_point> until) const;

 private:
  /// Requires `mutex_`.
  void end(RemoteState state);

  mutable std::mutex mutex_;
  mutable detail::ConditionVariable changed_;
  std::atomic<RemoteState> state_{RemoteState::not_ready};
  std::vector<std::byte> bytes_;
  std::exception_ptr error_;
};

}  // namespace detail

/// The future result of a scheduled function (spec L08). Copies share it. Once available, it outlives the worker and
/// the coordinator.
template <class T>
class RemoteValue {
 public:
  /// The type of the result.
  using Value = T;

  /// An empty value, which can only be assigned to.
  RemoteValue() = default;
  /// Made by `schedule`.
  explicit RemoteValue(std::shared_ptr<detail::RemoteResult> result) : result_(std::move(result)) {}

  /// Waits for the result. Throws RemoteError with the function's exception; Cancelled if the function did not run or
  /// its outcome is unknown; Unavailable if it has lost a resource. After `timeout`, throws DeadlineExceeded, and may
  /// be called again.
  T fetch() const { return fetch_until({}); }
  /// Waits like `fetch()`, but throws DeadlineExceeded after `timeout`.
  T fetch(std::chrono::nanoseconds timeout) const { return fetch_until(detail::RemoteResult::Clock::now() + timeout); }

  /// Returns whether the function waits, runs or has an outcome, without waiting. Thread-safe.
  [[nodiscard]] RemoteState state() const { return result().state(); }

 private:
  T fetch_until(std::optional<detail::RemoteResult::Clock::time_point> until) const {
    const std::span<const std::byte> bytes = result().wait(until);
    if constexpr (!std::is_void_v<T>) return from_bytes<T>(bytes, "The result of a scheduled function");
  }
  [[nodiscard]] const detail::RemoteResult& result() const {
    if (!result_)
      throw InvalidArgument("A RemoteValue has no function", "it was made without one, and nothing was assigned to it",
                            "Assign the result of schedule");
    return *result_;
  }

  std::shared_ptr<detail::RemoteResult> result_;
};

namespace detail {

template <class T>
inline constexpr bool is_remote_value = is_specialization<std::remove_cvref_t<T>, RemoteValue>;

/// True if T is or contains a RemoteValue. `Outer` are the enclosing types, which may be recursive through lists.
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

/// Replaces each RemoteValue in a structure, at any depth, by its value (spec L07). Other values stay as they are.
/// Waits for the values in order; throws like RemoteValue::fetch.
template <class T>
[[nodiscard]] auto fetch(const T& structure) {
  if constexpr (detail::is_remote_value<T>) {
    static_assert(!std::is_void_v<typename T::Value>,
                  "a RemoteValue<void> has no value to put into a structure: call its own fetch()");
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
                  "the members of a plain struct cannot change their types: fetch its RemoteValues one by one, or put "
                  "them into a std::tuple");
    return detail::refused<T>();
  }
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/remote_value.ipp>
#endif
