#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// A list of axes.
template <std::size_t... Axis>
struct Axes {
  /// The axes as values, in the given order.
  static constexpr std::array<std::size_t, sizeof...(Axis)> list{Axis...};
};

namespace detail {

/// Extents as compile-time constants.
template <std::size_t Rank>
using Extents = std::array<std::size_t, Rank>;

template <class T, auto extents, class Axes>
struct TracedOf;
template <class T, auto extents, std::size_t... Axis>
struct TracedOf<T, extents, std::index_sequence<Axis...>> {
  using Type = Traced<T, extents[Axis]...>;
};
/// The traced array with these extents.
template <class T, auto extents>
using TracedWith = typename TracedOf<T, extents, std::make_index_sequence<extents.size()>>::Type;

/// True if the array has all these axes, and none is repeated.
template <std::size_t Count>
[[nodiscard]] constexpr bool are_axes(const std::array<std::size_t, Count>& axes, std::size_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] >= rank || std::count(axes.begin(), axes.end(), axes[i]) != 1) return false;
  return true;
}
template <std::size_t... Axis>
[[nodiscard]] constexpr bool are_axes(std::size_t rank) {
  return are_axes(std::array<std::size_t, sizeof...(Axis)>{Axis...}, rank);
}

/// Extents without these axes.
template <std::size_t Removed, std::size_t Rank>
[[nodiscard]] constexpr Extents<Rank - Removed> without(const Extents<Rank>& extents,
                                                        const std::array<std::size_t, Removed>& axes) {
  Extents<Rank - Removed> kept{};
  std::size_t count = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept[count++] = extents[axis];
  return kept;
}

template <std::size_t First, std::size_t Second>
[[nodiscard]] constexpr Extents<First + Second> joined(const Extents<First>& first, const Extents<Second>& second) {
  Extents<First + Second> all{};
  std::copy(first.begin(), first.end(), all.begin());
  std::copy(second.begin(), second.end(), all.begin() + First);
  return all;
}

/// Extents of these axes.
template <std::size_t Count, std::size_t Rank>
[[nodiscard]] constexpr Extents<Count> at(const Extents<Rank>& extents, const std::array<std::size_t, Count>& axes) {
  Extents<Count> taken{};
  std::transform(axes.begin(), axes.end(), taken.begin(),
                 [&](std::size_t axis) { return axis < Rank ? extents[axis] : 0; });
  return taken;
}

template <std::size_t Rank>
[[nodiscard]] constexpr Extents<Rank> with(Extents<Rank> extents, std::size_t axis, std::size_t extent) {
  extents[axis] = extent;
  return extents;
}

/// StableHLO's name of a reduction.
template <class Op>
inline constexpr std::string_view reduction_name = [] {
  if constexpr (std::same_as<Op, Sum>)
    return "add";
  else if constexpr (std::same_as<Op, Prod>)
    return "multiply";
  else if constexpr (std::same_as<Op, Min>)
    return "minimum";
  else if constexpr (std::same_as<Op, Max>)
    return "maximum";
  else
    static_assert(::dist::detail::always_false<Op>,
                  "traced values are reduced by dist::sum, dist::prod, dist::min or dist::max");
}();

}  // namespace detail

/// Broadcasts `x`: its axis i becomes axis Axes[i] of the result; all other axes repeat it.
template <TracedArray Result, std::size_t... Axes, class T, std::size_t... Extents>
[[nodiscard]] Result broadcast(Traced<T, Extents...> x) {
  static_assert(std::same_as<typename Result::Element, T>, "hlo::broadcast keeps the type of elements");
  static_assert(sizeof...(Axes) == sizeof...(Extents) && detail::are_axes<Axes...>(Result::rank),
                "hlo::broadcast needs an axis of the result for each axis of the argument");
  static_assert(((Result::extents[Axes] == Extents) && ...),
                "hlo::broadcast: an axis of the argument and its axis of the result have different extents");
  return Result{untyped::broadcast(x.value(), Result::type().shape, {Axes...})};
}

/// Reshapes in row-major order. The number of hlo::batch extents must not change.
template <std::size_t... To, class T, std::size_t... Extents>
[[nodiscard]] Traced<T, To...> reshape(Traced<T, Extents...> x) {
  using Result = Traced<T, To...>;
  static_assert(Result::elements == Traced<T, Extents...>::elements, "hlo::reshape keeps the number of elements");
  static_assert(Result::batch_axes == Traced<T, Extents...>::batch_axes,
                "hlo::reshape keeps the number of axes that are hlo::batch");
  return Result{untyped::reshape(x.value(), Result::type().shape)};
}

/// Permutes axes: axis i of the result is axis Axes[i] of `x`.
template <std::size_t... Axes, class T, std::size_t... Extents>
[[nodiscard]] auto transpose(Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(sizeof...(Axes) == X::rank && detail::are_axes<Axes...>(X::rank),
                "hlo::transpose needs each axis of its argument once");
  return Traced<T, X::extents[Axes]...>{untyped::transpose(x.value(), {Axes...})};
}

/// Contracts the axes SummedOfA of `a` with the axes SummedOfB of `b`, of the same extents in this order, separately
/// along the batch axes. The result has the batch axes, then the other axes of `a`, then of `b`:
/// `contract<hlo::Axes<2>, hlo::Axes<1>, hlo::Axes<0>, hlo::Axes<0>>(a, b)` is a batched matrix product.
template <class SummedOfA, class SummedOfB, class BatchOfA = Axes<>, class BatchOfB = Axes<>, class T, std::size_t... A,
          std::size_t... B>
[[nodiscard]] auto contract(Traced<T, A...> a, Traced<T, B...> b) {
  constexpr detail::Extents<sizeof...(A)> of_a{A...};
  constexpr detail::Extents<sizeof...(B)> of_b{B...};
  constexpr auto used_of_a = detail::joined(BatchOfA::list, SummedOfA::list);
  constexpr auto used_of_b = detail::joined(BatchOfB::list, SummedOfB::list);
  static_assert(detail::are_axes(used_of_a, of_a.size()) && detail::are_axes(used_of_b, of_b.size()),
                "hlo::contract: an argument has no such axis, or it is named twice");
  static_assert(SummedOfA::list.size() == SummedOfB::list.size() && BatchOfA::list.size() == BatchOfB::list.size(),
                "hlo::contract takes the same number of axes of both arguments");
  static_assert(detail::at(of_a, used_of_a) == detail::at(of_b, used_of_b),
                "hlo::contract: the two axes have different extents");
  constexpr auto extents =
      detail::joined(detail::at(of_a, BatchOfA::list),
                     detail::joined(detail::without(of_a, used_of_a), detail::without(of_b, used_of_b)));
  const auto listed = [](const auto& axes) { return untyped::Axes(axes.begin(), axes.end()); };
  return detail::TracedWith<T, extents>{untyped::contract(
      a.value(), b.value(),
      {listed(BatchOfA::list), listed(BatchOfB::list), listed(SummedOfA::list), listed(SummedOfB::list)})};
}
/// Contracts one axis each: `contract<1, 0>(a, b)` is a matrix product.
template <std::size_t AxisOfA, std::size_t AxisOfB, class T, std::size_t... A, std::size_t... B>
[[nodiscard]] auto contract(Traced<T, A...> a, Traced<T, B...> b) {
  return contract<Axes<AxisOfA>, Axes<AxisOfB>>(a, b);
}

/// Reduces these axes, or all if none are given, by dist::sum, dist::prod, dist::min or dist::max.
template <std::size_t... Axes, class Op, class T, std::size_t... Extents>
[[nodiscard]] auto reduce(Op, Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  if constexpr (sizeof...(Axes) == 0 && X::rank != 0) {
    return [&]<std::size_t... All>(std::index_sequence<All...>) { return reduce<All...>(Op{}, x); }
    (std::make_index_sequence<X::rank>{});
  } else {
    static_assert(detail::are_axes<Axes...>(X::rank),
                  "hlo::reduce: the argument has no such axis, or it is named twice");
    constexpr std::array<std::size_t, sizeof...(Axes)> axes{Axes...};
    using Result = detail::TracedWith<T, detail::without(X::extents, axes)>;
    return Result{untyped::reduce(detail::reduction_name<Op>, x.value(), literal(Op::template identity<T>), {Axes...})};
  }
}

/// Each element is its index along Axis.
template <TracedArray Result, std::size_t Axis>
[[nodiscard]] Result iota() {
  static_assert(Axis < Result::rank, "hlo::iota: the result has no such axis");
  return Result{untyped::iota(Result::type(), Axis)};
}

/// Count elements along Axis, from First on.
template <std::size_t Axis, std::size_t First, std::size_t Count, class T, std::size_t... Extents>
[[nodiscard]] auto slice(Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::slice: the argument has no such axis");
  static_assert(X::extents[Axis] != batch, "hlo::slice cannot cut an axis that is hlo::batch");
  static_assert(First + Count <= X::extents[Axis], "hlo::slice: the argument has fewer elements along this axis");
  return detail::TracedWith<T, detail::with(X::extents, Axis, Count)>{
      untyped::slice_along(x.value(), Axis, First, First + Count)};
}

/// Pads `x` with this value at the start and end of Axis.
template <std::size_t Axis, std::size_t Before, std::size_t Behind, class T, std::size_t... Extents>
[[nodiscard]] auto pad(Traced<T, Extents...> x, std::type_identity_t<Traced<T>> value) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::pad: the argument has no such axis");
  static_assert(X::extents[Axis] != batch, "hlo::pad cannot lengthen an axis that is hlo::batch");
  untyped::Axes before(X::rank, 0), behind(X::rank, 0);
  before[Axis] = Before;
  behind[Axis] = Behind;
  return detail::TracedWith<T, detail::with(X::extents, Axis, Before + X::extents[Axis] + Behind)>{
      untyped::pad(x.value(), value.value(), before, behind, untyped::Axes(X::rank, 0))};
}

/// Reverses these axes.
template <std::size_t... Axis, class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> reverse(Traced<T, Extents...> x) {
  static_assert(detail::are_axes<Axis...>(sizeof...(Extents)),
                "hlo::reverse: the argument has no such axis, or it is named twice");
  return Traced<T, Extents...>{untyped::reverse(x.value(), {Axis...})};
}

/// Concatenates `a` and `b` along Axis.
template <std::size_t Axis, class T, std::size_t... A, std::size_t... B>
[[nodiscard]] auto concatenate(Traced<T, A...> a, Traced<T, B...> b) {
  constexpr detail::Extents<sizeof...(A)> of_a{A...};
  constexpr detail::Extents<sizeof...(B)> of_b{B...};
  static_assert(Axis < sizeof...(A), "hlo::concatenate: the arguments have no such axis");
  static_assert(of_a[Axis] != batch && of_b[Axis] != batch, "hlo::concatenate: its axis cannot be hlo::batch");
  static_assert(detail::with(of_a, Axis, 0) == detail::with(of_b, Axis, 0),
                "hlo::concatenate: only the extents along its axis may be different");
  using Result = detail::TracedWith<T, detail::with(of_a, Axis, of_a[Axis] + of_b[Axis])>;
  return Result{untyped::concatenate({a.value(), b.value()}, Axis)};
}

}  // namespace dist::hlo
