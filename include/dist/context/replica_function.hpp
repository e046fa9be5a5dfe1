/// Replica functions: the current run of a thread, arguments, and results.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/per_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

namespace detail {

/// The current run of a thread.
struct RunHere {
  const void* strategy = nullptr;  ///< the strategy of the run; null outside all runs
  bool is_merging = false;         ///< true while replica 0 executes a merge call, outside replica functions

  [[nodiscard]] bool is_replica_function() const noexcept { return strategy != nullptr && !is_merging; }
};

/// The run of the calling thread. Not set by strategies whose only replica is this thread.
inline constinit thread_local RunHere run_here{};

/// Sets the thread's run, and restores the previous one on destruction.
class RunGuard {
 public:
  explicit RunGuard(RunHere run) noexcept : before_(run_here) { run_here = run; }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;
  ~RunGuard() { run_here = before_; }

 private:
  RunHere before_;
};

/// Rethrows `cause`, the error of a run, if it reports the failure of another process.
void rethrow_failure_of_peer(const std::exception_ptr& cause);
[[noreturn]] void refuse_inside(std::string_view method, std::string_view instead);
[[noreturn]] void refuse_inside_another_strategy(std::string_view method);
/// Throw the errors of mismatched arguments: per-replica values of another strategy; gradients of another length; a
/// root that is out of range; lists of tensors that differ between replicas 0 and `replica`.
[[noreturn]] void refuse_values(std::string_view giver, std::size_t values, std::size_t replicas);
[[noreturn]] void refuse_gradients(std::string_view operation, std::size_t replica, std::size_t gradients,
                                   std::size_t elements);
[[noreturn]] void refuse_root(std::size_t root, std::size_t replicas);
[[noreturn]] void refuse_tensors(std::size_t replica, std::size_t count_of_first, std::size_t count);
/// Throws ShapeMismatch unless the shapes of all replicas are equal.
void require_equal_shapes(std::span<const Shape> shapes);

/// Throws WrongStrategy in a replica function of a strategy other than `strategy` (spec B08), unless that function
/// created it, because it then does not affect others. `made_in` is the strategy of the creating function.
inline void require_outside_other_strategies(const void* strategy, const void* made_in, std::string_view method) {
  if (run_here.is_replica_function() && run_here.strategy != strategy && run_here.strategy != made_in)
    refuse_inside_another_strategy(method);
}

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

/// Returns what local replica `index` receives of an argument of `run` (spec C01, F06): its own value of a PerReplica;
/// of a structure with PerReplicas, a structure of its values, by reference in a tuple, by value in an array or
/// optional; any other argument as it is.
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

/// Returns a copy of local replica `index`'s value, also inside structures.
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

/// Throws WrongStrategy unless `argument` has values for `replicas` replicas. `giver` begins the message.
template <class Argument>
void require_value_per_replica([[maybe_unused]] std::size_t replicas, [[maybe_unused]] const Argument& argument,
                               [[maybe_unused]] std::string_view giver = "run was given") {
  if constexpr (is_per_replica<Argument>) {
    if (argument.size() != replicas) detail::refuse_values(giver, argument.size(), replicas);
  } else if constexpr (detail::is_optional<Argument> && detail::holds_per_replica<Argument>) {
    if (argument) require_value_per_replica(replicas, *argument, giver);
  } else if constexpr (detail::holds_per_replica<Argument>) {
    std::apply([&](const auto&... members) { (require_value_per_replica(replicas, members, giver), ...); }, argument);
  }
}

namespace detail {

/// True for types that do not own their elements.
template <class T>
inline constexpr bool is_view = false;
template <class T, class Where>
inline constexpr bool is_view<TensorView<T, Where>> = true;
template <class T, class Where>
inline constexpr bool is_view<DeviceSpan<T, Where>> = true;
template <class T, std::size_t Extent>
inline constexpr bool is_view<std::span<T, Extent>> = true;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;

}  // namespace detail

/// A view of memory that outlives the run, created by `lasting`. `run` returns the view itself.
template <class View>
struct Lasting {
  /// The view that `run` returns.
  View view;
  /// Returns the view.
  operator View() const { return view; }
};

/// Allows a replica function to return a view: `return dist::lasting(variable.read(replica));`. Its memory must outlive
/// the run, such as memory of variables and captured objects.
template <class View>
  requires detail::is_view<View>
[[nodiscard]] constexpr Lasting<View> lasting(View view) { return {view}; }

namespace detail {

/// The type that `run` returns for a `T`: views instead of lasting ones.
template <class T>
struct WithoutLasting {
  using Type = T;
};
template <class View>
struct WithoutLasting<Lasting<View>> {
  using Type = View;
};
template <class... Ts>
struct WithoutLasting<std::tuple<Ts...>> {
  using Type = std::tuple<typename WithoutLasting<Ts>::Type...>;
};
template <class A, class B>
struct WithoutLasting<std::pair<A, B>> {
  using Type = std::pair<typename WithoutLasting<A>::Type, typename WithoutLasting<B>::Type>;
};
template <class T>
struct WithoutLasting<std::optional<T>> {
  using Type = std::optional<typename WithoutLasting<T>::Type>;
};

template <class T>
inline constexpr bool returns_view = is_view<T>;
template <class... Ts>
inline constexpr bool returns_view<std::tuple<Ts...>> = (returns_view<std::remove_cv_t<Ts>> || ...);
template <class A, class B>
inline constexpr bool returns_view<std::pair<A, B>> = returns_view<A> || returns_view<B>;
template <class T, std::size_t Size>
inline constexpr bool returns_view<std::array<T, Size>> = returns_view<T>;
template <class T>
inline constexpr bool returns_view<std::optional<T>> = returns_view<T>;

/// Returns the decayed type of a replica function's result. Rejects views.
template <class Returned>
constexpr auto require_lasting_result() {
  static_assert(!returns_view<Returned>,
                "a replica function returns a view, whose elements may not outlive the function: return a number, a "
                "Tensor or another value that owns them, or dist::lasting(view) if they outlive the run");
  return std::type_identity<typename WithoutLasting<Returned>::Type>{};
}

/// The type that a replica receives for an `Argument` of `run`.
template <class Argument>
using Received = decltype(select_replica(std::size_t{}, std::declval<std::remove_reference_t<Argument>&>()));

/// Checks that `run` can call `Fn`, with one error message.
template <class Fn, class Context, class... Args>
[[nodiscard]] constexpr bool require_replica_function() {
  constexpr bool callable = is_callable<std::remove_reference_t<Fn>, Context&, Received<Args>...>();
  static_assert(callable,
                "run calls its function with the replica context by reference, then with the replica's part of each "
                "argument (its own value of a PerReplica): this function does not take these");
  return callable;
}

/// Checks that a replica function may return `Result` if replicas run concurrently.
template <class Result>
[[nodiscard]] constexpr bool require_place_of_result() {
  constexpr bool has_place = std::default_initializable<Result>;
  static_assert(
      has_place,
      "the result of a replica function must be default-constructible: its place is created before the replicas run");
  return has_place;
}

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/context/replica_function.ipp>
#endif
