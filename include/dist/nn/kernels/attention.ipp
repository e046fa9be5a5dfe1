#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <dist/core/config.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/kernels/attention.hpp>
#include <dist/nn/kernels/exponential.hpp>
#include <dist/nn/kernels/matrix_product.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// Queries of a block, and keys of a block: a multiple of the rows of a product's tiles, 6 and 8.
inline constexpr std::size_t attention_block = 48;

/// Returns the floats of a packed row, whole cache lines.
[[nodiscard]] constexpr std::size_t packed_width(std::size_t width) noexcept { return (width + 15) / 16 * 16; }

/// A block of queries, `rows`, and keys.
struct AttentionPart {
  std::size_t rows;
  std::size_t keys;
  bool is_diagonal;  ///< row r attends to keys 0 to r

  /// Returns the keys that row r attends to.
  [[nodiscard]] std::size_t reach(std::size_t row) const noexcept { return is_diagonal ? row + 1 : keys; }
  /// Returns the end of the columns that products with selected terms read of row r.
  [[nodiscard]] std::size_t read_end(std::size_t row) const noexcept {
    return is_diagonal ? std::min(row + MatrixProduct<float>::most_tile_rows, attention_block) : keys;
  }
};

/// Replaces products of queries and keys by exponentials, and continues the softmax of each row over the blocks:
/// `largest` product, `sums` of exponentials, and `outputs`, relative to the largest product of these blocks.
struct ContinueSoftmax {
  AttentionPart part;
  float* weights;  ///< [attention_block, attention_block]
  float* largest;
  float* sums;
  float* outputs;
  std::size_t output_width;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t lanes = Bytes / sizeof(float);
    using Floats = Vector<float, Bytes>;
    for (std::size_t row = 0; row < part.rows; ++row) {
      float* const of_row = weights + row * attention_block;
      const std::size_t reach = part.reach(row);
      const std::size_t columns = (reach + lanes - 1) / lanes * lanes;
      for (std::size_t key = reach; key < columns; ++key) of_row[key] = -std::numeric_limits<float>::infinity();
      Floats top;
      load<Bytes>(top, of_row);
      for (std::size_t key = lanes; key < columns; key += lanes) {
        Floats next;
        load<Bytes>(next, of_row + key);
        top = next > top ? next : top;
      }
      float now = largest[row];
      for (std::size_t lane = 0; lane < lanes; ++lane) now = top[lane] > now ? top[lane] : now;
      Floats total = {};
      for (std::size_t key = 0; key < columns; key += lanes) {
        Floats weight;
        load<Bytes>(weight, of_row + key);
        weight -= now;
        exponential<Bytes>(weight);
        total += weight;
        store<Bytes>(weight, of_row + key);
      }
      for (std::size_t key = columns; key < part.read_end(row); ++key) of_row[key] = 0;
      float sum = 0;
      for (std::size_t lane = 0; lane < lanes; ++lane) sum += total[lane];
      if (now != largest[row]) {
        const float shrink = std::exp(largest[row] - now);
        sums[row] *= shrink;
        largest[row] = now;
        float* const output = outputs + row * output_width;
        for (std::size_t column = 0; column < output_width; ++column) output[column] *= shrink;
      }
      sums[row] += sum;
    }
  }
};

/// Replaces products of queries and keys by softmaxes, and products of output gradients and values by gradients of the
/// former products.
struct SoftmaxGradients {
  AttentionPart part;
  float* weights;  ///< [attention_block, attention_block]
  float* slopes;   ///< [attention_block, attention_block]
  const float* log_sums;
  const float* means;  ///< the sum of weights times their gradients for each row

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t lanes = Bytes / sizeof(float);
    for (std::size_t row = 0; row < part.rows; ++row) {
      float* const of_row = weights + row * attention_block;
      float* const slopes_of_row = slopes + row * attention_block;
      const std::size_t reach = part.reach(row);
      const std::size_t columns = (reach + lanes - 1) / lanes * lanes;
      for (std::size_t key = reach; key < columns; ++key) {
        of_row[key] = -std::numeric_limits<float>::infinity();
        slopes_of_row[key] = 0;
      }
      for (std::size_t key = 0; key < columns; key += lanes) {
        Vector<float, Bytes> weight;
        Vector<float, Bytes> slope;
        load<Bytes>(weight, of_row + key);
        load<Bytes>(slope, slopes_of_row + key);
        weight -= log_sums[row];
        exponential<Bytes>(weight);
        slope = weight * (slope - means[row]);
        store<Bytes>(weight, of_row + key);
        store<Bytes>(slope, slopes_of_row + key);
      }
      for (std::size_t key = columns; key < part.read_end(row); ++key) of_row[key] = slopes_of_row[key] = 0;
    }
  }
};

/// Copies a head's [length, width], multiplied by `factor`, from rows `stride` apart: as rows of packed_width(width),
/// or transposed in blocks of keys, [blocks, width, attention_block].
struct PackHead {
  const float* from;
  std::size_t stride;
  std::size_t length;
  std::size_t width;
  float factor;
  float* to;
  bool transposed;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    if (transposed) {
      for (std::size_t first = 0; first < length; first += attention_block)
        transpose_block<Bytes>(from + first * stride, std::min(attention_block, length - first), to + first * width);
      return;
    }
    for (std::size_t at = 0; at < length; ++at) scale_row(from + at * stride, to + at * packed_width(width));
  }

 private:
  /// Prefetches the columns of the next head, because hardware does not follow short pieces of long rows.
  DIST_ALWAYS_INLINE void prefetch_next_head(const float* row) const {
    for (std::size_t column = width; column < 2 * width; column += 16) __builtin_prefetch(row + column);
  }
  DIST_ALWAYS_INLINE void scale_row(const float* row, float* packed) const {
    const float scale = factor;
    const std::size_t size = width;
    prefetch_next_head(row);
    DIST_INDEPENDENT_LOOP
    for (std::size_t column = 0; column < size; ++column) packed[column] = scale * row[column];
  }
  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void transpose_block(const float* block, std::size_t keys, float* packed) const {
    constexpr std::size_t lanes = Bytes / sizeof(float);
    for (std::size_t row = 0; row < keys; ++row) prefetch_next_head(block + row * stride);
    std::size_t key = 0;
    std::size_t column = 0;
    for (; key + lanes <= keys; key += lanes) {
      for (column = 0; column + lanes <= width; column += lanes) {
        Vector<float, Bytes> square[lanes];
        unrolled<lanes>([&]<std::size_t Row>()
                            DIST_INLINE_LAMBDA { load<Bytes>(square[Row], block + (key + Row) * stride + column); });
        transpose<float, Bytes>(square);
        unrolled<lanes>([&]<std::size_t Row>() DIST_INLINE_LAMBDA {
          store<Bytes>(square[Row], packed + (column + Row) * attention_block + key);
        });
      }
    }
    for (std::size_t k = 0; k < keys; ++k)
      for (std::size_t c = k < key ? column : 0; c < width; ++c)
        packed[c * attention_block + k] = block[k * stride + c];
  }
};

/// Computes the products of rows of a head: to[i] = a[i] · b[i]; rows of a are `stride` apart, and b is packed.
struct DotRows {
  const float* a;
  std::size_t stride;
  const float* b;
  std::size_t length;
  std::size_t width;
  float* to;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t lanes = Bytes / sizeof(float);
    for (std::size_t at = 0; at < length; ++at) {
      const float* const left = a + at * stride;
      const float* const right = b + at * packed_width(width);
      Vector<float, Bytes> sums = {};
      std::size_t column = 0;
      for (; column + lanes <= width; column += lanes) {
        Vector<float, Bytes> x;
        Vector<float, Bytes> y;
        load<Bytes>(x, left + column);
        load<Bytes>(y, right + column);
        sums += x * y;
      }
      float sum = 0;
      for (; column < width; ++column) sum += left[column] * right[column];
      for (std::size_t lane = 0; lane < lanes; ++lane) sum += sums[lane];
      to[at] = sum;
    }
  }
};

/// The head of a sequence, and its products by blocks. Panels have rows of `row` floats, or are transposed.
struct AttentionHead {
  std::size_t length;
  std::size_t width;
  std::size_t row = packed_width(width);

  [[nodiscard]] std::size_t panel() const noexcept {
    return (length + attention_block - 1) / attention_block * attention_block * row;
  }

  void pack(const float* from, std::size_t stride, std::size_t rows, float factor, float* to) const {
    dist::detail::with_widest_vectors(PackHead{from, stride, rows, width, factor, to, false});
  }
  void transpose(const float* from, std::size_t stride, float* to) const {
    dist::detail::with_widest_vectors(PackHead{from, stride, length, width, 1, to, true});
  }
  void unpack(const float* from, std::size_t stride, float* to) const {
    for (std::size_t at = 0; at < length; ++at) std::copy_n(from + at * row, width, to + at * stride);
  }

  /// to[row, key] = left[row] · right[key]; `right` is transposed.
  void multiply(const AttentionPart& part, const float* left, const float* right, float* to) const {
    product({.rows = part.rows,
             .depth = width,
             .columns = part.keys,
             .a = left,
             .a_row = row,
             .a_k = 1,
             .b = right,
             .b_row = attention_block,
             .c = to,
             .c_row = attention_block,
             .adds = false,
             .terms = part.is_diagonal ? Terms::columns_to_row : Terms::all});
  }
  /// to[row] += sum over keys of factors[row, key] * from[key]
  void add_over_keys(const AttentionPart& part, const float* factors, const float* from, float* to) const {
    product({.rows = part.rows,
             .depth = part.keys,
             .columns = width,
             .a = factors,
             .a_row = attention_block,
             .a_k = 1,
             .b = from,
             .b_row = row,
             .c = to,
             .c_row = row,
             .adds = true,
             .terms = part.is_diagonal ? Terms::depth_to_row : Terms::all});
  }
  /// to[key] += sum over rows of factors[row, key] * from[row]
  void add_over_rows(const AttentionPart& part, const float* factors, const float* from, float* to) const {
    product({.rows = part.keys,
             .depth = part.rows,
             .columns = width,
             .a = factors,
             .a_row = 1,
             .a_k = attention_block,
             .b = from,
             .b_row = row,
             .c = to,
             .c_row = row,
             .adds = true,
             .terms = part.is_diagonal ? Terms::depth_from_row : Terms::all});
  }

 private:
  static void product(const MatrixProduct<float>& of_blocks) { dist::detail::with_widest_vectors(of_blocks); }
};

DIST_INLINE std::size_t attention_scratch(const AttentionSizes& sizes) {
  const AttentionHead head{sizes.length, sizes.width};
  return 8 * head.panel() + 2 * attention_block * attention_block + sizes.length;
}

DIST_INLINE void attention(const AttentionSizes& sizes, const AttentionInputs<float>& inputs, float* outputs,
                           float* log_sums, float* scratch) {
  const AttentionHead head{sizes.length, sizes.width};
  const std::size_t columns = sizes.columns();
  float* const keys = scratch;
  float* const values = keys + head.panel();
  float* const queries = values + head.panel();
  float* const sums_of_values = queries + attention_block * head.row;
  float* const weights = sums_of_values + attention_block * head.row;
  const float scale = 1 / std::sqrt(static_cast<float>(sizes.width));
  float largest[attention_block];
  float sums[attention_block];
  for (std::size_t h = 0; h < sizes.heads; ++h) {
    const std::size_t shared = sizes.heads / sizes.key_heads;
    if (h % shared == 0) {
      head.transpose(inputs.keys + h / shared * sizes.width, sizes.key_columns(), keys);
      head.pack(inputs.values + h / shared * sizes.width, sizes.key_columns(), sizes.length, 1, values);
    }
    for (std::size_t query = 0; query < sizes.length; query += attention_block) {
      const std::size_t rows = std::min(attention_block, sizes.length - query);
      const std::size_t first = query * columns + h * sizes.width;
      head.pack(inputs.queries + first, columns, rows, scale, queries);
      std::fill_n(sums_of_values, rows * head.row, 0.0f);
      std::fill_n(largest, rows, -std::numeric_limits<float>::infinity());
      std::fill_n(sums, rows, 0.0f);
      const std::size_t end = sizes.is_causal ? query + rows : sizes.length;
      for (std::size_t key = 0; key < end; key += attention_block) {
        const AttentionPart part{rows, std::min(attention_block, sizes.length - key), sizes.is_causal && key == query};
        head.multiply(part, queries, keys + key * sizes.width, weights);
        dist::detail::with_widest_vectors(ContinueSoftmax{part, weights, largest, sums, sums_of_values, head.row});
        head.add_over_keys(part, weights, values + key * head.row, sums_of_values);
      }
      for (std::size_t at = 0; at < rows; ++at) {
        const float share = 1 / sums[at];
        for (std::size_t column = 0; column < sizes.width; ++column)
          outputs[first + at * columns + column] = share * sums_of_values[at * head.row + column];
        log_sums[h * sizes.length + query + at] = largest[at] + std::log(sums[at]);
      }
    }
  }
}

DIST_INLINE void attention_gradients(const AttentionSizes& sizes, const AttentionInputs<float>& inputs,
                                     const float* outputs, const float* log_sums,
                                     const AttentionGradients<float>& gradients, float* scratch) {
  const AttentionHead head{sizes.length, sizes.width};
  const std::size_t columns = sizes.columns();
  const std::size_t key_columns = sizes.key_columns();
  float* panels[8];
  for (float*& panel : panels) {
    panel = scratch;
    scratch += head.panel();
  }
  const auto& [transposed_keys, transposed_values, keys, queries, slopes, query_gradients, key_gradients,
               value_gradients] = panels;
  float* const weights = scratch;
  float* const of_products = weights + attention_block * attention_block;
  float* const means = of_products + attention_block * attention_block;
  const float scale = 1 / std::sqrt(static_cast<float>(sizes.width));
  const std::size_t shared = sizes.heads / sizes.key_heads;
  for (std::size_t h = 0; h < sizes.heads; ++h) {
    const std::size_t first = h * sizes.width;
    const std::size_t first_key = h / shared * sizes.width;
    if (h % shared == 0) {
      head.transpose(inputs.keys + first_key, key_columns, transposed_keys);
      head.transpose(inputs.values + first_key, key_columns, transposed_values);
      head.pack(inputs.keys + first_key, key_columns, sizes.length, scale, keys);
      std::fill_n(key_gradients, head.panel(), 0.0f);
      std::fill_n(value_gradients, head.panel(), 0.0f);
    }
    head.pack(inputs.queries + first, columns, sizes.length, scale, queries);
    head.pack(gradients.outputs + first, columns, sizes.length, 1, slopes);
    std::fill_n(query_gradients, head.panel(), 0.0f);
    dist::detail::with_widest_vectors(DotRows{outputs + first, columns, slopes, sizes.length, sizes.width, means});
    for (std::size_t key = 0; key < sizes.length; key += attention_block) {
      const std::size_t in_block = std::min(attention_block, sizes.length - key);
      for (std::size_t query = sizes.is_causal ? key : 0; query < sizes.length; query += attention_block) {
        const AttentionPart part{std::min(attention_block, sizes.length - query), in_block,
                                 sizes.is_causal && key == query};
        const std::size_t row = query * head.row;
        head.multiply(part, queries + row, transposed_keys + key * sizes.width, weights);
        head.multiply(part, slopes + row, transposed_values + key * sizes.width, of_products);
        dist::detail::with_widest_vectors(
            SoftmaxGradients{part, weights, of_products, log_sums + h * sizes.length + query, means + query});
        head.add_over_keys(part, of_products, keys + key * head.row, query_gradients + row);
        head.add_over_rows(part, weights, slopes + row, value_gradients + key * head.row);
        head.add_over_rows(part, of_products, queries + row, key_gradients + key * head.row);
      }
    }
    head.unpack(query_gradients, columns, gradients.queries + first);
    if ((h + 1) % shared == 0) {
      head.unpack(key_gradients, key_columns, gradients.keys + first_key);
      head.unpack(value_gradients, key_columns, gradients.values + first_key);
    }
  }
}

}  // namespace dist::nn::kernels
