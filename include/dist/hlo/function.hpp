#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// An argument whose memory becomes that of the first result of its type that no argument before has. The caller has
/// nothing left of it.
template <TracedArray Array>
struct Donated {
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
/// What the function that is traced gets for an argument.
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

/// Which result takes the memory of each argument; `results` where none does.
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

/// A program for XLA with the types of its results and arguments, `Function<std::tuple<Results...>(Arguments...)>`, as
/// `trace` gives it.
template <class Signature>
class Function;
template <class... Results, class... Arguments>
class Function<std::tuple<Results...>(Arguments...)> {
 public:
  Function(std::string module, std::size_t replicas) : module_(std::move(module)), replicas_(replicas) {}

  /// A module of StableHLO whose function `main` is the program.
  [[nodiscard]] const std::string& module() const noexcept { return module_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }

 private:
  std::string module_;
  std::size_t replicas_;
};

/// Writes down what `body` does with traced arguments, as a program for so many replicas: calls it once, with a
/// `Traced<T, Extents...>` for each of Arguments, which are such types or Donated ones. It returns a traced value, or a
/// std::tuple of some. Throws InvalidArgument.
///
///     auto mean_of_squares = hlo::trace<hlo::Traced<float, 100>>(2, [](auto x) {
///       return hlo::all_reduce(dist::mean, hlo::reduce(dist::sum, x * x));
///     });
template <class... Arguments, class Body>
[[nodiscard]] auto trace(std::size_t replicas, Body&& body) {
  static_assert((TracedArray<detail::TracedArgument<Arguments>> && ...),
                "the arguments of hlo::trace are hlo::Traced<T, Extents...>, or hlo::Donated ones");
  using Result = decltype(std::declval<Body&>()(std::declval<detail::TracedArgument<Arguments>>()...));
  using Results = typename detail::ResultsOf<Result>::Type;
  static_assert(detail::are_traced<Results>,
                "the function of hlo::trace returns a hlo::Traced<T, Extents...>, or a std::tuple of some");
  using Donations = detail::Donations<Results, Arguments...>;
  static_assert(Donations::all_taken, "no result has the type of a hlo::Donated argument, or other arguments take it");
  Trace trace{replicas};
  const std::tuple arguments{detail::TracedArgument<Arguments>{trace.argument()}...};
  std::string parameters;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((parameters += dist::text(I == 0 ? "" : ", ", std::get<I>(arguments).name(), ": ", std::get<I>(arguments).type(),
                               Donations::to[I] == Donations::results
                                   ? ""
                                   : dist::text(" {tf.aliasing_output = ", Donations::to[I], " : i32}"))),
     ...);
  }
  (std::index_sequence_for<Arguments...>{});
  const Results results{std::apply(std::forward<Body>(body), arguments)};
  const detail::Listed listed = detail::listed(results);
  return Function<Results(Arguments...)>{
      dist::text("module @program attributes {mhlo.num_replicas = ", replicas,
                 " : i32, mhlo.num_partitions = 1 : i32} {\nfunc.func @main(", parameters, ") -> (", listed.types,
                 ") {\n", trace.text(), "return ", listed.names, " : ", listed.types, "\n}\n}\n"),
      replicas};
}

}  // namespace dist::hlo
