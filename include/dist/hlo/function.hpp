#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// An argument that is consumed: its memory is reused for the first result of the same type that no earlier argument
/// has taken.
template <TracedArray Array>
struct Donated {
  /// The array type of the argument.
  using Type = Array;
};

namespace detail {

template <class Argument>
struct ArgumentOf {
  using Type = Argument;
  static constexpr bool is_donated = false;
};
template <class Array>
struct ArgumentOf<Donated<Array>> {
  using Type = Array;
  static constexpr bool is_donated = true;
};
/// The parameter type of a traced function.
template <class Argument>
using TracedArgument = typename ArgumentOf<Argument>::Type;

/// Results as a std::tuple.
template <class Result>
struct ResultsOf {
  using Type = std::tuple<Result>;
};
template <class... Results>
struct ResultsOf<std::tuple<Results...>> {
  using Type = std::tuple<Results...>;
};

template <class Results>
inline constexpr bool are_traced = false;
template <class... Results>
inline constexpr bool are_traced<std::tuple<Results...>> = (TracedArray<Results> && ...);

/// The index of the result that reuses each argument's memory; otherwise `results`.
template <class Results, class... Arguments>
struct Donations;
template <class... Results, class... Arguments>
struct Donations<std::tuple<Results...>, Arguments...> {
  static constexpr std::size_t results = sizeof...(Results);
  static constexpr std::array<std::size_t, sizeof...(Arguments)> to = [] {
    std::array<std::size_t, sizeof...(Arguments)> to{};
    std::array<bool, results + 1> taken{};
    std::size_t argument = 0;
    [[maybe_unused]] const auto place = [&]<class Argument>(std::type_identity<Argument>) {
      to[argument] = results;
      if (ArgumentOf<Argument>::is_donated) {
        constexpr std::array<bool, results + 1> fits{std::is_same_v<TracedArgument<Argument>, Results>..., false};
        for (std::size_t result = 0; result < results && to[argument] == results; ++result)
          if (fits[result] && !taken[result]) to[argument] = result;
        taken[to[argument]] = true;
      }
      ++argument;
    };
    (place(std::type_identity<Arguments>{}), ...);
    return to;
  }();
  static constexpr bool all_taken = [] {
    constexpr std::array<bool, sizeof...(Arguments) + 1> is_donated{ArgumentOf<Arguments>::is_donated..., false};
    for (std::size_t argument = 0; argument < sizeof...(Arguments); ++argument)
      if (is_donated[argument] && to[argument] == results) return false;
    return true;
  }();
};

}  // namespace detail

/// A program for XLA with typed results and arguments, `Function<std::tuple<Results...>(Arguments...)>`; see `trace`.
template <class Signature>
class Function;
template <class... Results, class... Arguments>
class Function<std::tuple<Results...>(Arguments...)> {
 public:
  Function(std::string module, std::size_t replicas, std::optional<std::size_t> rows = std::nullopt)
      : module_(std::move(module)), replicas_(replicas), rows_(rows) {}

  /// A StableHLO module with the program as function `main`.
  [[nodiscard]] const std::string& module() const noexcept { return module_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// The rows of a replica's batch; empty without a batch.
  [[nodiscard]] std::optional<std::size_t> rows() const noexcept { return rows_; }

 private:
  std::string module_;
  std::size_t replicas_;
  std::optional<std::size_t> rows_;
};

namespace detail {

template <class... Arguments, class Body>
[[nodiscard]] auto traced(std::size_t replicas, std::optional<std::size_t> rows, Body&& body, SourceLine place) {
  static_assert((TracedArray<TracedArgument<Arguments>> && ...),
                "the arguments of hlo::trace must be hlo::Traced<T, Extents...>, possibly as hlo::Donated");
  using Result = decltype(std::declval<Body&>()(std::declval<TracedArgument<Arguments>>()...));
  using Results = typename ResultsOf<Result>::Type;
  static_assert(are_traced<Results>,
                "the function of hlo::trace must return an hlo::Traced<T, Extents...>, or a std::tuple of these");
  using Places = Donations<Results, Arguments...>;
  static_assert(Places::all_taken,
                "no result has the type of an hlo::Donated argument, or other arguments use this result");
  Trace trace{replicas, rows};
  const Scope scope{"program", place};
  const std::tuple arguments{TracedArgument<Arguments>{trace.argument(TracedArgument<Arguments>::type())}...};
  std::vector<Donation> donations;
  for (std::size_t argument = 0; argument < sizeof...(Arguments); ++argument)
    if (Places::to[argument] != Places::results) donations.push_back({argument, Places::to[argument]});
  const Results results{std::apply(std::forward<Body>(body), arguments)};
  return Function<Results(Arguments...)>{trace.module(values_of(arguments), values_of(results), donations), replicas,
                                         rows};
}

}  // namespace detail

/// Traces `body` as a program for `replicas` replicas. Calls `body` once, with a `Traced<T, Extents...>` for each of
/// Arguments, which are such types or Donated ones; `body` returns one or a std::tuple of them. XLA's errors name
/// `place`. Throws InvalidArgument.
///
///     auto mean_of_squares = hlo::trace<hlo::Traced<float, 100>>(2, [](auto x) {
///       return hlo::all_reduce(dist::mean, hlo::reduce(dist::sum, x * x));
///     });
template <class... Arguments, class Body>
[[nodiscard]] auto trace(std::size_t replicas, Body&& body, SourceLine place = here()) {
  return detail::traced<Arguments...>(replicas, std::nullopt, std::forward<Body>(body), place);
}
/// Traces `body` for batches of `rows` rows per replica, the extent hlo::batch.
template <class... Arguments, class Body>
[[nodiscard]] auto trace(std::size_t replicas, std::size_t rows, Body&& body, SourceLine place = here()) {
  return detail::traced<Arguments...>(replicas, rows, std::forward<Body>(body), place);
}

}  // namespace dist::hlo
