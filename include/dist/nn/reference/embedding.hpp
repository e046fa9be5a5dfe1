#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::reference {

/// Throws the InvalidArgument for an id that is no number of one of `Words` rows; `place` is where it is in the batch.
template <std::size_t Words, class T>
[[noreturn]] void refuse_id(std::size_t place, T id) {
  throw InvalidArgument(
      "nn::Embedding was given an id that its table does not have",
      concat("element ", place, " of the batch is ", static_cast<double>(id), ", ids are 0 to ", Words - 1),
      "Give ids in that range, or an nn::Embedding with more words");
}

/// Rows of a table by their numbers. Other CPU back ends use it too.
template <std::size_t Words, std::size_t Width, class T>
class Embedding {
 public:
  /// Throws InvalidArgument for an id that is no number of a row.
  template <class State>
  void forward(State&, TensorView<const T> ids, TensorView<const T> table, TensorView<T> y) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      std::copy_n(table.data() + row_of(ids.data()[i], i) * Width, Width, y.data() + i * Width);
  }

  /// Of all rows; those that no id names have none.
  template <class State>
  void table_gradient(State&, TensorView<const T> ids, TensorView<const T> dy, TensorView<T> gradient) {
    std::fill_n(gradient.data(), gradient.size(), T{0});
    for (std::size_t i = 0; i < ids.size(); ++i)
      add(dy.data() + i * Width, gradient.data() + row_of(ids.data()[i], i) * Width, Width);
  }

 private:
  [[nodiscard]] static std::size_t row_of(T id, std::size_t place) {
    // Written so that a NaN is refused.
    if (!(id >= T{0} && id < static_cast<T>(Words))) refuse_id<Words>(place, id);
    return static_cast<std::size_t>(id);
  }
};

}  // namespace dist::nn::reference
