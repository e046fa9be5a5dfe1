#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// How a batch of one type is divided into rows. A specialisation has the types `View` (of several rows) and `Row` (of
/// one, with one axis less) and three functions: `count(batch)`, `view(batch, first, count)` and `row(batch, index)`.
template <class Batch>
struct Rowwise;

/// A batch whose rows can be divided: a Tensor, a TensorView, and an Example, std::tuple, std::pair or std::array of
/// such (spec I30).
template <class Batch>
concept HasRows = requires {
  typename Rowwise<Batch>::View;
};

template <HasRows Batch>
using RowsOf = typename Rowwise<Batch>::View;
template <HasRows Batch>
using RowOf = typename Rowwise<Batch>::Row;
/// What a replica function gets of a batch of `D`, to be named: `[](auto& replica, const data::BatchOf<D>& batch)`.
/// These are views under every strategy; a strategy of one replica may hand out the whole batch, which converts to them.
template <class D>
using BatchOf = RowsOf<typename std::remove_cvref_t<D>::Element>;

/// How many rows a batch has. Throws ShapeMismatch for an array without axes, and for a batch whose parts differ in
/// their number.
template <HasRows Batch>
[[nodiscard]] std::size_t row_count(const Batch& batch) {
  return Rowwise<Batch>::count(batch);
}
/// `count` rows from `first` on, as views of the batch.
template <HasRows Batch>
[[nodiscard]] RowsOf<Batch> rows_of(const Batch& batch, std::size_t first, std::size_t count) {
  return Rowwise<Batch>::view(batch, first, count);
}
/// Row `index`, as a view of the batch with one axis less.
template <HasRows Batch>
[[nodiscard]] RowOf<Batch> row_of(const Batch& batch, std::size_t index) {
  return Rowwise<Batch>::row(batch, index);
}

template <class T>
struct Rowwise<TensorView<T>> {
  using View = TensorView<const T>;
  using Row = View;

  [[nodiscard]] static std::size_t count(View batch) {
    if (batch.shape().rank() == 0)
      throw ShapeMismatch("A scalar has no rows",
                          "an array of rank 1 or more was expected, its first axis counts the rows",
                          "Give the array an outermost axis");
    return batch.rows();
  }
  [[nodiscard]] static View view(View batch, std::size_t first, std::size_t count) { return batch.rows(first, count); }
  [[nodiscard]] static Row row(View batch, std::size_t index) { return batch.row(index); }
};

/// A tensor is divided as a view of itself.
template <class T>
struct Rowwise<Tensor<T>> : Rowwise<TensorView<const T>> {};

template <HasRows X, HasRows Y>
struct Rowwise<Example<X, Y>> {
  using View = Example<RowsOf<X>, RowsOf<Y>>;
  using Row = Example<RowOf<X>, RowOf<Y>>;

  [[nodiscard]] static std::size_t count(const Example<X, Y>& batch) {
    const std::size_t features = row_count(batch.x);
    const std::size_t labels = row_count(batch.y);
    if (features != labels)
      throw ShapeMismatch("Features and labels differ in number", concat(features, " features, ", labels, " labels"),
                          "Give one label for each feature");
    return features;
  }
  [[nodiscard]] static View view(const Example<X, Y>& batch, std::size_t first, std::size_t count) {
    return {rows_of(batch.x, first, count), rows_of(batch.y, first, count)};
  }
  [[nodiscard]] static Row row(const Example<X, Y>& batch, std::size_t index) {
    return {row_of(batch.x, index), row_of(batch.y, index)};
  }
};

namespace detail {

/// The rows of what std::get takes apart. `ViewType` and `RowType` are made of the parts' views and rows.
template <class Batch, class ViewType, class RowType>
struct RowwiseParts {
  using View = ViewType;
  using Row = RowType;

  [[nodiscard]] static std::size_t count(const Batch& batch) {
    return over_parts([&]<std::size_t... I>(std::index_sequence<I...>) {
      const std::size_t counts[] = {row_count(std::get<I>(batch))...};
      for (std::size_t part = 1; part < sizeof...(I); ++part)
        if (counts[part] != counts[0])
          throw ShapeMismatch("The arrays of one batch differ in their number of rows",
                              concat("array 0 has ", counts[0], ", array ", part, " has ", counts[part]),
                              "Give every array one row for each example");
      return counts[0];
    });
  }
  [[nodiscard]] static View view(const Batch& batch, std::size_t first, std::size_t count) {
    return over_parts([&]<std::size_t... I>(std::index_sequence<I...>) {
      return View{rows_of(std::get<I>(batch), first, count)...};
    });
  }
  [[nodiscard]] static Row row(const Batch& batch, std::size_t index) {
    return over_parts([&]<std::size_t... I>(std::index_sequence<I...>) {
      return Row{row_of(std::get<I>(batch), index)...};
    });
  }

 private:
  template <class Fn>
  static auto over_parts(Fn fn) {
    return fn(std::make_index_sequence<std::tuple_size_v<Batch>>{});
  }
};

}  // namespace detail

template <HasRows First, HasRows... Rest>
struct Rowwise<std::tuple<First, Rest...>>
    : detail::RowwiseParts<std::tuple<First, Rest...>, std::tuple<RowsOf<First>, RowsOf<Rest>...>,
                           std::tuple<RowOf<First>, RowOf<Rest>...>> {};
template <HasRows A, HasRows B>
struct Rowwise<std::pair<A, B>>
    : detail::RowwiseParts<std::pair<A, B>, std::pair<RowsOf<A>, RowsOf<B>>, std::pair<RowOf<A>, RowOf<B>>> {};
template <HasRows T, std::size_t Size>
  requires(Size > 0)
struct Rowwise<std::array<T, Size>>
    : detail::RowwiseParts<std::array<T, Size>, std::array<RowsOf<T>, Size>, std::array<RowOf<T>, Size>> {};

}  // namespace dist::data
