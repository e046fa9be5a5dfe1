#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/memory.cuh>
#include <dist/nn/cuda/rows.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/geometry.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn::cuda {

/// The layout of queries, [rows * length, heads * width], of keys and values, [rows * length, key_heads * width], and
/// of weights, [rows, heads, length, length] by query and key.
template <class Geometry>
struct Heads {
  static constexpr std::size_t length = Geometry::sizes.length;
  static constexpr std::size_t heads = Geometry::sizes.heads;
  static constexpr std::size_t width = Geometry::sizes.width;
  static constexpr std::size_t row = Geometry::sizes.columns();
  static constexpr std::size_t key_row = Geometry::sizes.key_columns();
  static constexpr std::size_t shared = heads / Geometry::sizes.key_heads;  ///< heads of queries per head of keys

  /// The offset of a query in the columns of a head; `head` counts over all sequences.
  [[nodiscard]] static DIST_HD std::size_t query(std::size_t head, std::size_t at) {
    return (head / heads * length + at) * row + head % heads * width;
  }
  /// The offset of a key or value of this head.
  [[nodiscard]] static DIST_HD std::size_t key(std::size_t head, std::size_t at) {
    return (head / heads * length + at) * key_row + head % heads / shared * width;
  }
  /// The head of element `i` of a matrix, and its row in the sequence.
  [[nodiscard]] static DIST_HD std::size_t head_of(std::size_t i) { return i / row / length * heads + i % row / width; }
  [[nodiscard]] static DIST_HD std::size_t row_of(std::size_t i) { return i / row % length; }

  /// The keys to which a query attends, and the queries that attend to a key.
  [[nodiscard]] static DIST_HD IndexRange keys(std::size_t query) {
    return {0, Geometry::sizes.is_causal ? query + 1 : length};
  }
  [[nodiscard]] static DIST_HD IndexRange queries(std::size_t key) {
    return {Geometry::sizes.is_causal ? key : 0, length};
  }
};

/// products[query, key] = scale * first[query] · second[key], or `beyond` if the query does not attend to the key.
template <class Geometry, class T>
struct ProductsOfHeads {
  using H = Heads<Geometry>;
  const T* first;
  const T* second;
  T* products;
  T scale, beyond;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t key = i % H::length, query = i / H::length % H::length;
    if (key >= H::keys(query).end) {
      products[i] = beyond;
      return;
    }
    const std::size_t head = i / (H::length * H::length);
    const T* const a = first + H::query(head, query);
    const T* const b = second + H::key(head, key);
    T sum{0};
    for (std::size_t c = 0; c < H::width; ++c) sum += a[c] * b[c];
    products[i] = scale * sum;
  }
};
/// to[query] = scale * sum over keys of weights[query, key] * from[key]
template <class Geometry, class T>
struct SumOverKeys {
  using H = Heads<Geometry>;
  const T* weights;
  const T* from;
  T* to;
  T scale;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t head = H::head_of(i), query = H::row_of(i);
    const T* const of_query = weights + (head * H::length + query) * H::length;
    const T* const column = from + H::key(head, 0) + i % H::width;
    T sum{0};
    for (std::size_t key = 0; key < H::keys(query).end; ++key) sum += of_query[key] * column[key * H::key_row];
    to[i] = scale * sum;
  }
};
/// to[key] = scale * sum over queries of weights[query, key] * from[query], over the heads that share the key
template <class Geometry, class T>
struct SumOverQueries {
  using H = Heads<Geometry>;
  const T* weights;
  const T* from;
  T* to;
  T scale;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t key = i / H::key_row % H::length;
    const std::size_t first = i / H::key_row / H::length * H::heads + i % H::key_row / H::width * H::shared;
    T sum{0};
    for (std::size_t head = first; head < first + H::shared; ++head) {
      const T* const of_key = weights + head * H::length * H::length + key;
      const T* const column = from + H::query(head, 0) + i % H::width;
      for (std::size_t query = H::queries(key).begin; query < H::length; ++query)
        sum += of_key[query * H::length] * column[query * H::row];
    }
    to[i] = scale * sum;
  }
};

/// Scaled dot-product attention: weights = softmax(queries · keysᵀ / sqrt(width)), outputs = weights · values.
/// `forward` keeps the weights for the gradient.
template <class Geometry, class T>
class Attention {
  static constexpr AttentionSizes sizes = Geometry::sizes;
  static constexpr std::size_t length = sizes.length;

 public:
  void forward(State& state, View<const T> queries, View<const T> keys, View<const T> values, View<T> outputs) {
    const auto& queue = state.queue();
    const View<T> weights = reserved(queue, weights_, queries.rows());
    queue.for_each({0, weights.size()},
                   ProductsOfHeads<Geometry, T>{queries.data(), keys.data(), weights.data(), scale_of_products(),
                                                -static_cast<T>(__builtin_huge_val())});
    for_each_row(state, weights.size() / length, length,
                 detail::SoftmaxOfRow<T>{weights.data(), weights.data(), length});
    queue.for_each({0, outputs.size()}, SumOverKeys<Geometry, T>{weights.data(), values.data(), outputs.data(), T{1}});
  }

  /// Overwrites the three gradients.
  void input_gradients(State& state, View<const T> queries, View<const T> keys, View<const T> values,
                       View<const T> /*outputs*/, View<const T> output_gradients, View<T> query_gradients,
                       View<T> key_gradients, View<T> value_gradients) {
    const auto& queue = state.queue();
    const View<const T> weights = reserved(queue, weights_, queries.rows());
    const View<T> of_weights = reserved(queue, of_weights_, queries.rows());
    const T scale = scale_of_products();
    queue.for_each({0, weights.size()},
                   ProductsOfHeads<Geometry, T>{output_gradients.data(), values.data(), of_weights.data(), T{1}, T{0}});
    queue.for_each({0, value_gradients.size()},
                   SumOverQueries<Geometry, T>{weights.data(), output_gradients.data(), value_gradients.data(), T{1}});
    // Overwritten with the gradients of the products.
    for_each_row(state, weights.size() / length, length,
                 detail::SoftmaxGradientOfRow<T>{weights.data(), of_weights.data(), of_weights.data(), length});
    queue.for_each({0, query_gradients.size()},
                   SumOverKeys<Geometry, T>{of_weights.data(), keys.data(), query_gradients.data(), scale});
    queue.for_each({0, key_gradients.size()},
                   SumOverQueries<Geometry, T>{of_weights.data(), queries.data(), key_gradients.data(), scale});
  }

 private:
  [[nodiscard]] static T scale_of_products() { return T{1} / std::sqrt(static_cast<T>(sizes.width)); }

  /// Returns numbers for each query and key of `elements / length` sequences.
  [[nodiscard]] static View<T> reserved(const auto& queue, Memory<T>& memory, std::size_t elements) {
    const Shape shape{elements / length, sizes.heads, length, length};
    memory.reserve(queue, elements * sizes.heads * length);
    return {memory.data(), shape};
  }

  Memory<T> weights_;
  Memory<T> of_weights_;
};

}  // namespace dist::nn::cuda
