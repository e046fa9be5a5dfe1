#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/row.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn::reference {

/// Scaled dot-product attention of heads, each on its own columns of queries, keys and values [rows * length,
/// heads * width]: outputs = softmax(queries · keysᵀ / sqrt(width)) · values. `weights` [rows, heads, length, length] are
/// those softmaxes, which the caller keeps for the gradient. Other CPU back ends use it too.
template <class Geometry, class T>
class Attention {
  static constexpr std::size_t length = Geometry::length;
  static constexpr std::size_t heads = Geometry::heads;
  static constexpr std::size_t width = Geometry::width;
  static constexpr std::size_t row = heads * width;

 public:
  template <class State>
  void forward(State&, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
               TensorView<T> weights, TensorView<T> outputs) {
    const T scale = scale_of_products();
    std::fill_n(outputs.data(), outputs.size(), T{0});
    for_each_query(queries.rows(), [&](std::size_t query, std::size_t first, std::size_t reach, std::size_t at) {
      T* const weight = weights.data() + at;
      for (std::size_t j = 0; j < reach; ++j)
        weight[j] = scale * dot(queries.data() + query, keys.data() + first + j * row, width);
      nn::detail::softmax(nn::detail::ThreadOfRow{reach}, weight, weight);
      for (std::size_t j = 0; j < reach; ++j)
        add_scaled(weight[j], values.data() + first + j * row, outputs.data() + query, width);
    });
  }

  /// Overwrites the three gradients.
  template <class State>
  void input_gradients(State&, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
                       TensorView<const T> weights, TensorView<const T> output_gradients, TensorView<T> query_gradients,
                       TensorView<T> key_gradients, TensorView<T> value_gradients) {
    const T scale = scale_of_products();
    for (const TensorView<T>& gradients : {query_gradients, key_gradients, value_gradients})
      std::fill_n(gradients.data(), gradients.size(), T{0});
    for_each_query(queries.rows(), [&](std::size_t query, std::size_t first, std::size_t reach, std::size_t at) {
      const T* const weight = weights.data() + at;
      const T* const slope = output_gradients.data() + query;
      T of_weight[length];
      T mean{0};
      for (std::size_t j = 0; j < reach; ++j) {
        of_weight[j] = dot(slope, values.data() + first + j * row, width);
        mean += weight[j] * of_weight[j];
      }
      for (std::size_t j = 0; j < reach; ++j) {
        const T of_product = scale * weight[j] * (of_weight[j] - mean);
        add_scaled(of_product, keys.data() + first + j * row, query_gradients.data() + query, width);
        add_scaled(of_product, queries.data() + query, key_gradients.data() + first + j * row, width);
        add_scaled(weight[j], slope, value_gradients.data() + first + j * row, width);
      }
    });
  }

 private:
  [[nodiscard]] static T scale_of_products() { return T{1} / std::sqrt(static_cast<T>(width)); }

  /// Calls `visit(query, first, reach, at)`: where a head's query lies, where the first of its keys does, how many of these
  /// the query attends to, and where its weights start.
  template <class Visit>
  static void for_each_query(std::size_t queries, Visit&& visit) {
    for (std::size_t sequence = 0; sequence < queries / length; ++sequence)
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t i = 0; i < length; ++i) {
          const std::size_t first = sequence * length * row + head * width;
          visit(first + i * row, first, Geometry::is_causal ? i + 1 : length,
                ((sequence * heads + head) * length + i) * length);
        }
  }
};

}  // namespace dist::nn::reference
