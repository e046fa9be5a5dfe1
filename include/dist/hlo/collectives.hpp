#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/hlo/operations.hpp>

namespace dist::hlo {

namespace untyped {

[[nodiscard]] Value replica_id();
/// `reduction` is "add", "multiply", "minimum" or "maximum".
[[nodiscard]] Value all_reduce(std::string_view reduction, Value x);
[[nodiscard]] Value all_gather(Value x, std::size_t axis);
[[nodiscard]] Value reduce_scatter(std::string_view reduction, Value x, std::size_t axis);

/// Throws InvalidArgument if the program has another number of replicas.
void require_replicas(std::size_t replicas, std::string_view collective);

}  // namespace untyped

/// The index of the running replica, from 0.
[[nodiscard]] inline Traced<std::uint32_t> replica_id() { return Traced<std::uint32_t>{untyped::replica_id()}; }

/// Reduces `x` over all replicas, element by element, by dist::sum, dist::prod, dist::min, dist::max or, for
/// floating-point elements, dist::mean.
template <class Op, class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> all_reduce(Op, Traced<T, Extents...> x) {
  if constexpr (std::same_as<Op, Mean>) {
    static_assert(Floating<T>, "a mean needs floating-point elements: use x.as<float>()");
    return all_reduce(sum, x) / Traced<T, Extents...>{static_cast<T>(static_cast<float>(Trace::current().replicas()))};
  } else {
    return Traced<T, Extents...>{untyped::all_reduce(detail::reduction_name<Op>, x.value())};
  }
}

/// Concatenates `x` of all `Replicas` replicas along Axis, in replica order. Throws InvalidArgument if the program
/// has another number of replicas.
template <std::size_t Replicas, std::size_t Axis = 0, class T, std::size_t... Extents>
[[nodiscard]] auto all_gather(Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::all_gather: the argument has no such axis");
  static_assert(X::extents[Axis] != batch, "hlo::all_gather: its axis cannot be hlo::batch");
  untyped::require_replicas(Replicas, "hlo::all_gather");
  using Result = detail::TracedWith<T, detail::with(X::extents, Axis, Replicas * X::extents[Axis])>;
  return Result{untyped::all_gather(x.value(), Axis)};
}

/// Reduces `x` over all `Replicas` replicas; each receives an equal part along Axis, in replica order. Throws
/// InvalidArgument if the program has another number of replicas.
template <std::size_t Replicas, std::size_t Axis = 0, class Op, class T, std::size_t... Extents>
[[nodiscard]] auto reduce_scatter(Op, Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::reduce_scatter: the argument has no such axis");
  static_assert(X::extents[Axis] != batch, "hlo::reduce_scatter: its axis cannot be hlo::batch");
  static_assert(X::extents[Axis] % Replicas == 0, "hlo::reduce_scatter: the replicas' parts are not equal");
  untyped::require_replicas(Replicas, "hlo::reduce_scatter");
  using Result = detail::TracedWith<T, detail::with(X::extents, Axis, X::extents[Axis] / Replicas)>;
  return Result{untyped::reduce_scatter(detail::reduction_name<Op>, x.value(), Axis)};
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/collectives.ipp>
#endif
