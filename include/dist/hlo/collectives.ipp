#pragma once

#include <string>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/hlo/collectives.hpp>

namespace dist::hlo::untyped {

namespace detail {

/// Returns an attribute: `replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>`.
[[nodiscard]] DIST_INLINE std::string all_replicas() {
  const std::size_t replicas = Trace::current().replicas();
  return concat("replica_groups = dense<[[", dist::joined(axes_in_order(replicas)), "]]> : tensor<1x", replicas,
                "xi64>");
}

/// Records a reducing collective. Only sums have a gradient.
[[nodiscard]] DIST_INLINE Value reducing(std::string_view name, std::string_view reduction, Value x,
                                         std::string attributes, const Shape& shape, Pullback of_sum) {
  const ElementKind element = type_of(x).element;
  Operation operation{name, {x}, std::move(attributes), {}};
  if (reduction == "add") operation.pullbacks.push_back(std::move(of_sum));
  operation.regions.push_back(reducer(reduction, element));
  return Trace::current().add(std::move(operation), {element, shape});
}

}  // namespace detail

DIST_INLINE Value replica_id() {
  return Trace::current().add({"replica_id", {}, "", {}}, {ElementKind::ui32, Shape{}});
}

DIST_INLINE Value all_reduce(std::string_view reduction, Value x) {
  if (Trace::current().replicas() == 1) return x;  // XLA would copy it
  return detail::reducing("all_reduce", reduction, x, detail::all_replicas(), type_of(x).shape,
                          [](Value, Value g) { return all_reduce("add", g); });
}

DIST_INLINE Value all_gather(Value x, std::size_t axis) {
  if (Trace::current().replicas() == 1) return x;
  Type type = type_of(x);
  type.shape = with_extent(type.shape, axis, type.shape[axis] * Trace::current().replicas());
  return Trace::current().add({"all_gather",
                               {x},
                               concat(number("all_gather_dim", axis), ", ", detail::all_replicas()),
                               {[axis](Value, Value g) { return reduce_scatter("add", g, axis); }}},
                              type);
}

DIST_INLINE Value reduce_scatter(std::string_view reduction, Value x, std::size_t axis) {
  if (Trace::current().replicas() == 1) return x;
  const Shape& shape = type_of(x).shape;
  return detail::reducing("reduce_scatter", reduction, x,
                          concat(number("scatter_dimension", axis), ", ", detail::all_replicas()),
                          with_extent(shape, axis, shape[axis] / Trace::current().replicas()),
                          [axis](Value, Value g) { return all_gather(g, axis); });
}

DIST_INLINE void require_replicas(std::size_t replicas, std::string_view collective) {
  const std::size_t traced = Trace::current().replicas();
  if (traced == replicas) return;
  throw InvalidArgument(concat(collective, " does not fit this program"),
                        concat("it is for ", replicas, " replicas, but the program is for ", traced),
                        "Trace the program for the number of replicas of the collective");
}

}  // namespace dist::hlo::untyped
