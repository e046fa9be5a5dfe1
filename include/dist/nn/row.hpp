/// Rows in formulas, and loops over rows on a back end's device: in order on the host, by its kernels on others.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::nn::detail {

/// A row that one thread visits. Formulas of layers use `sum_of`, `max_of` and `for_each_of`, with independent calls;
/// nn/cuda/rows.cuh and nn/hlo/rows.hpp overload them.
struct ThreadOfRow {
  std::size_t count;

  /// True if this thread writes the row's results.
  [[nodiscard]] static DIST_HD constexpr bool is_first() noexcept { return true; }
};

/// Two numbers that are summed together.
struct TwoSums {
  double first = 0, second = 0;
  DIST_HD void operator+=(const TwoSums& other) {
    first += other.first;
    second += other.second;
  }
};
/// Returns the sum of `f(k)`; on the host over 16 partial sums, for vector registers.
template <class F>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE auto sum_of(ThreadOfRow row, const F& f) {
  using Sum = decltype(f(std::size_t{}));
  Sum sum{};
  std::size_t k = 0;
#ifndef __CUDA_ARCH__
  constexpr std::size_t lanes = 16;
  if constexpr (std::is_same_v<Sum, TwoSums>) {
    double first[lanes] = {}, second[lanes] = {};
    for (; k + lanes <= row.count; k += lanes) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const TwoSums next = f(k + lane);
        first[lane] += next.first;
        second[lane] += next.second;
      }
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) sum += TwoSums{first[lane], second[lane]};
  } else {
    Sum partial[lanes] = {};
    for (; k + lanes <= row.count; k += lanes) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += f(k + lane);
    }
    for (const Sum& lane : partial) sum += lane;
  }
#endif
  for (; k < row.count; ++k) sum += f(k);
  return sum;
}
/// Returns the largest `f(k)`, ignoring NaN; -infinity for an empty row.
template <class F>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE auto max_of(ThreadOfRow row, const F& f) {
  using Number = decltype(f(std::size_t{}));
  Number largest = -static_cast<Number>(__builtin_huge_val());
  for (std::size_t k = 0; k < row.count; ++k) {
    const Number next = f(k);
    largest = next > largest ? next : largest;
  }
  return largest;
}
template <class F>
DIST_HD DIST_ALWAYS_INLINE void for_each_of(ThreadOfRow row, const F& f) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t k = 0; k < row.count; ++k) f(k);
}

}  // namespace dist::nn::detail

namespace dist::nn {

/// A row of a matrix, on host or device. Formulas of rows, such as losses and metrics, are templates over the type of
/// row: this one, or detail::TracedRow, for all rows of a matrix in a program for XLA. `row[k]` is an Element, a sum
/// over a row is a Number. Formulas visit elements by the functions below, which call `f(k)` for each index k, and
/// choose by `select`, because a program has no `if`.
template <class T>
struct Row {
  /// The type of an element.
  using Element = std::remove_const_t<T>;
  /// The type of a sum over the row.
  using Number = Element;

  T* elements = nullptr;  ///< first element
  std::size_t count = 0;  ///< number of elements

  /// The number of elements.
  [[nodiscard]] DIST_HD std::size_t size() const noexcept { return count; }
  /// The element at `index`.
  [[nodiscard]] DIST_HD T& operator[](std::size_t index) const noexcept { return elements[index]; }
};
/// Returns the sum of `f(k)`.
template <class T, class F>
[[nodiscard]] DIST_HD auto sum_of(Row<T> row, const F& f) {
  return detail::sum_of(detail::ThreadOfRow{row.size()}, f);
}
/// Returns the number of elements for which `f(k)` is true.
template <class T, class F>
[[nodiscard]] DIST_HD double count_of(Row<T> row, const F& f) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < row.size(); ++k)
    if (f(k)) ++count;
  return static_cast<double>(count);
}
/// Calls `f(k)` for each element.
template <class T, class F>
DIST_HD void for_each_element(Row<T> row, const F& f) {
  for (std::size_t k = 0; k < row.size(); ++k) f(k);
}
/// Returns element `k`, or NaN if `k` is out of range.
template <class T>
[[nodiscard]] DIST_HD typename Row<T>::Element element_or_nan(Row<T> row, std::size_t k) {
  return k < row.size() ? row[k] : static_cast<typename Row<T>::Element>(__builtin_nan(""));
}
/// Returns 1 if true, else 0.
[[nodiscard]] DIST_HD constexpr double number_of(bool condition) { return condition ? 1 : 0; }
/// Converts a condition or a non-negative number to a bin's index.
template <class T>
[[nodiscard]] DIST_HD constexpr std::size_t bin_of(T number) {
  return static_cast<std::size_t>(number);
}

/// Returns the row of these elements.
template <class T>
[[nodiscard]] Row<T> row_of(std::span<T> elements) {
  return {elements.data(), elements.size()};
}

/// Returns row `index` of a matrix, without a Shape.
template <class T>
[[nodiscard]] Row<T> row_at(T* elements, std::size_t row_size, std::size_t index) {
  return {elements + index * row_size, row_size};
}

/// Returns the index of the largest score, the first of equal ones; 0 for an empty row.
template <class T>
[[nodiscard]] DIST_HD std::size_t index_of_largest(Row<T> scores) {
  std::size_t top = 0;
  for (std::size_t k = 1; k < scores.size(); ++k)
    if (scores[k] > scores[top]) top = k;
  return top;
}
/// Returns the index of the largest score, the first of equal ones; 0 for an empty span.
template <class T>
[[nodiscard]] std::size_t index_of_largest(std::span<const T> scores) {
  return index_of_largest(row_of(scores));
}

/// Returns a label's class; for a negative label a number above all classes.
template <std::integral Label>
[[nodiscard]] DIST_HD constexpr std::size_t class_of(Label label) {
  return static_cast<std::size_t>(label);
}
/// Returns the class of the label in a row.
template <class Label>
[[nodiscard]] DIST_HD constexpr std::size_t class_of(Row<Label> label) {
  return class_of(label[0]);
}

}  // namespace dist::nn

namespace dist::nn::detail {

template <class T>
struct AddTo {
  const T* from;
  T* to;
  DIST_HD void operator()(std::size_t i) const { to[i] += from[i]; }
};

/// Calls `body(threads, row)` for each of `rows` rows of `size` elements. `threads`, a ThreadOfRow or a device's
/// threads of the row, is for `sum_of` and similar functions. A body is a named type with a `DIST_HD` call operator.
template <class Backend, class Body>
void for_each_row([[maybe_unused]] typename Backend::State& state, std::size_t rows, std::size_t size,
                  const Body& body) {
  if constexpr (Backend::Device::Space::host_accessible)
    for (std::size_t row = 0; row < rows; ++row) body(ThreadOfRow{size}, row);
  else
    Backend::for_each_row(state, rows, size, body);
}

/// Sums the elements of a column, as terms of `sum_columns`.
template <class T>
struct SumOfElements {
  using Sum = T;
  static constexpr std::size_t count = 1;
  const T* matrix;
  std::size_t columns;
  template <class Sums>
  DIST_HD void operator()(std::size_t row, std::size_t column, Sums&& sums) const {
    sums[0] += matrix[row * columns + column];
  }
};

/// The sums of one column, interleaved with other columns.
template <class Sum>
struct SumsOfColumn {
  Sum* first;
  std::size_t columns;
  [[nodiscard]] DIST_HD Sum& operator[](std::size_t which) const { return first[which * columns]; }
};
/// Computes `Terms::count` sums of each column of a matrix into `to`: first sums of all columns, then second ones, and
/// so on; 0 for an empty matrix. `terms(row, column, sums)`, DIST_HD, adds an element's terms to `sums[which]`.
template <class Backend, class Terms>
void sum_columns([[maybe_unused]] typename Backend::State& state, std::size_t rows, std::size_t columns,
                 const Terms& terms, typename Terms::Sum* to) {
  if constexpr (Backend::Device::Space::host_accessible) {
    using Sum = typename Terms::Sum;
    for (std::size_t i = 0; i < Terms::count * columns; ++i) to[i] = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t column = 0; column < columns; ++column) {
        terms(row, column, SumsOfColumn<Sum>{to + column, columns});
      }
    }
  } else {
    Backend::sum_columns(state, rows, columns, terms, to);
  }
}

}  // namespace dist::nn::detail
