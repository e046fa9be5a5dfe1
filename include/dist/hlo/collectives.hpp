#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/hlo/operations.hpp>

namespace dist::hlo {

namespace detail {

/// The group of all replicas: "dense<[[0, 1]]> : tensor<1x2xi64>".
[[nodiscard]] inline std::string all_replicas(const Trace& trace) {
  std::string numbers;
  for (std::size_t replica = 0; replica < trace.replicas(); ++replica)
    numbers += dist::text(replica == 0 ? "" : ", ", replica);
  return dist::text("dense<[[", numbers, "]]> : tensor<1x", trace.replicas(), "xi64>");
}

/// The function of two numbers in a collective that reduces.
template <class Op, class T>
[[nodiscard]] std::string reducer(Trace& trace) {
  const Traced<T> a{trace.argument()}, b{trace.argument()}, result{trace.argument()};
  return dist::text("({ ^bb0(", a.name(), ": ", a.type(), ", ", b.name(), ": ", b.type(), "):\n", result.name(),
                    " = stablehlo.", Reduction<Op, T>::name, " ", a.name(), ", ", b.name(), " : ", a.type(),
                    "\nstablehlo.return ", result.name(), " : ", result.type(), "\n})");
}

inline void require_replicas(const Trace& trace, std::size_t replicas, std::string_view collective) {
  if (trace.replicas() == replicas) return;
  throw InvalidArgument(dist::text(collective, " is not for this program"),
                        dist::text("it is for ", replicas, " replicas, and the program for ", trace.replicas()),
                        "Trace the program for as many replicas as the collective names");
}

}  // namespace detail

/// The number of the replica that runs the program, from 0.
[[nodiscard]] inline Traced<std::uint32_t> replica_id() {
  return Traced<std::uint32_t>{Trace::current().add("stablehlo.replica_id : tensor<ui32>")};
}

/// Reduces `x` of all replicas, element by element, by dist::sum, dist::prod, dist::min, dist::max or, for floating-point
/// elements, dist::mean. Every replica has the result.
template <class Op, class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> all_reduce(Op, Traced<T, Extents...> x) {
  Trace& trace = Trace::current();
  if constexpr (std::same_as<Op, Mean>) {
    static_assert(Floating<T>, "a mean needs floating-point elements: use x.as<float>()");
    return all_reduce(sum, x) / Traced<T, Extents...>{static_cast<T>(static_cast<float>(trace.replicas()))};
  } else {
    return Traced<T, Extents...>{trace.add(
        dist::text("\"stablehlo.all_reduce\"(", x.name(), ") ", detail::reducer<Op, T>(trace),
                   " {replica_groups = ", detail::all_replicas(trace), "} : (", x.type(), ") -> ", x.type()))};
  }
}

/// What all replicas have, one behind the other along Axis, by their numbers. `Replicas` is how many there are. Throws
/// InvalidArgument where the program is traced for another number.
template <std::size_t Replicas, std::size_t Axis = 0, class T, std::size_t... Extents>
[[nodiscard]] auto all_gather(Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::all_gather: the argument has no such axis");
  Trace& trace = Trace::current();
  detail::require_replicas(trace, Replicas, "hlo::all_gather");
  using Result = detail::TracedWith<T, detail::with(X::extents, Axis, Replicas * X::extents[Axis])>;
  return Result{trace.add(dist::text("\"stablehlo.all_gather\"(", x.name(), ") {all_gather_dim = ", Axis,
                                     " : i64, replica_groups = ", detail::all_replicas(trace), "} : (", x.type(),
                                     ") -> ", Result::type()))};
}

/// Reduces `x` of all replicas, of which each gets an equal part along Axis, by their numbers. Throws InvalidArgument where
/// the program is traced for another number of replicas than `Replicas`.
template <std::size_t Replicas, std::size_t Axis = 0, class Op, class T, std::size_t... Extents>
[[nodiscard]] auto reduce_scatter(Op, Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::reduce_scatter: the argument has no such axis");
  static_assert(X::extents[Axis] % Replicas == 0, "hlo::reduce_scatter: the replicas' parts are not equal");
  Trace& trace = Trace::current();
  detail::require_replicas(trace, Replicas, "hlo::reduce_scatter");
  using Result = detail::TracedWith<T, detail::with(X::extents, Axis, X::extents[Axis] / Replicas)>;
  return Result{trace.add(dist::text(
      "\"stablehlo.reduce_scatter\"(", x.name(), ") ", detail::reducer<Op, T>(trace), " {scatter_dimension = ", Axis,
      " : i64, replica_groups = ", detail::all_replicas(trace), "} : (", x.type(), ") -> ", Result::type()))};
}

}  // namespace dist::hlo
