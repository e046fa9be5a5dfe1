#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/structure.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/pending_number.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/strategy/trace_context.hpp>

namespace dist::detail {

/// Whether a step may return it: traced arrays, with rows of a batch on the first axis only, or nothing.
template <class Result>
inline constexpr bool is_step_result = TracedValue<Result> || std::is_void_v<Result>;
template <class T, std::size_t First, std::size_t... Extents>
inline constexpr bool is_step_result<hlo::Traced<T, First, Extents...>> = ((Extents != hlo::batch) && ...);
template <class... Members>
inline constexpr bool is_step_result<std::tuple<Members...>> = (is_step_result<Members> && ...);
template <class First, class Second>
inline constexpr bool is_step_result<std::pair<First, Second>> = is_step_result<First>&& is_step_result<Second>;
template <class Member, std::size_t N>
inline constexpr bool is_step_result<std::array<Member, N>> = is_step_result<Member>;

/// Calls `use(array)` for each traced array of a result, in order.
template <class Result, class Use>
void for_each_array(const Result& result, Use&& use) {
  if constexpr (Structure<Result>)
    for_each_member(result, [&](const auto& member) { for_each_array(member, use); });
  else
    use(result);
}

/// What a result of a step is on the host: `of(next, rows)` makes it of the buffers that `next()` gives in order, of a
/// replica whose batch has so many rows.
template <class Result>
struct HostForm;
template <class T>
struct HostForm<hlo::Traced<T>> {
  template <class Next>
  [[nodiscard]] static hlo::PendingNumber<T> of(Next&& next, std::size_t) {
    return hlo::PendingNumber<T>{next()};
  }
};
template <class T, std::size_t First, std::size_t... Extents>
struct HostForm<hlo::Traced<T, First, Extents...>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t rows) {
    Tensor<T> values = next().template download<T>();
    if (First == hlo::batch) values.resize(values.shape().row().stacked(rows));
    return values;
  }
};
template <class T>
struct HostForm<hlo::Dynamic<T>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t) {
    return next().template download<T>();
  }
};
template <Structure Result>
struct HostForm<Result> {
  template <class Next>
  [[nodiscard]] static auto of(Next&& next, std::size_t rows) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (is_array<Result>) {
        using Host = decltype(HostForm<typename Result::value_type>::of(next, rows));
        return std::array<Host, sizeof...(I)>{
            (static_cast<void>(I), HostForm<typename Result::value_type>::of(next, rows))...};
      } else {
        using Host =
            typename StructureLike<Result,
                                   decltype(HostForm<std::tuple_element_t<I, Result>>::of(next, rows))...>::Type;
        return Host{HostForm<std::tuple_element_t<I, Result>>::of(next, rows)...};
      }
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>{});
  }
};

}  // namespace dist::detail
