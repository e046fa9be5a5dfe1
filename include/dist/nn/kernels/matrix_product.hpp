#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// The terms of a product that are computed. The others are known to be 0, or not used, because a factor or the result
/// is a block on the diagonal of a triangular matrix.
enum class Terms : unsigned char {
  all,
  columns_to_row,  ///< columns up to the row; further columns of the result are unspecified
  depth_to_row,    ///< k up to the row
  depth_from_row,  ///< k from the row on
};

/// The product c = a · b, or c += a · b, of blocks in the caches: c[row, column] gets the sum over k of a[row, k] *
/// b[k, column]. Element (row, k) of a is at a[row * a_row + k * a_k], so a may be a transposed matrix; rows of b and c
/// are contiguous. Whole vectors are computed: rows of b and c have room for multiples of 64 bytes.
///
/// `Terms` are selected for tiles of at most `most_tile_rows` rows: a factor has zeros next to its diagonal.
template <class T>
struct MatrixProduct {
  static constexpr std::size_t most_tile_rows = 8;

  std::size_t rows;
  std::size_t depth;
  std::size_t columns;
  const T* a;
  std::size_t a_row;
  std::size_t a_k;
  const T* b;
  std::size_t b_row;
  T* c;
  std::size_t c_row;
  bool adds;
  Terms terms = Terms::all;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t lanes = Bytes / sizeof(T);
    constexpr std::size_t tile_rows = vector_registers<Bytes> == 32 ? most_tile_rows : 6;
    for (std::size_t column = 0; column < columns; column += 2 * lanes) {
      for (std::size_t row = 0; row < rows;) {
        row += with_first_within<tile_rows, 4, 2, 1>(rows - row, [&]<std::size_t Rows>() DIST_INLINE_LAMBDA {
          if (terms == Terms::columns_to_row && column >= row + Rows) return;
          if (column + lanes < columns)
            multiply_tile<Bytes, Rows, 2>(row, column);
          else
            multiply_tile<Bytes, Rows, 1>(row, column);
        });
      }
    }
  }

 private:
  template <std::size_t Bytes, std::size_t Rows, std::size_t Vectors>
  DIST_ALWAYS_INLINE void multiply_tile(std::size_t row, std::size_t column) const {
    constexpr std::size_t lanes = Bytes / sizeof(T);
    const std::size_t begin = terms == Terms::depth_from_row ? row : 0;
    const std::size_t end = terms == Terms::depth_to_row ? std::min(row + Rows, depth) : depth;
    T* const to = c + row * c_row + column;
    Vector<T, Bytes> sums[Rows][Vectors] = {};
    if (adds) {
      unrolled<Rows * Vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
        load<Bytes>(sums[At / Vectors][At % Vectors], to + At / Vectors * c_row + At % Vectors * lanes);
      });
    }
    const T* factors = a + row * a_row + begin * a_k;
    const T* from = b + begin * b_row + column;
    for (std::size_t k = begin; k < end; ++k, factors += a_k, from += b_row) {
      Vector<T, Bytes> terms_of_k[Vectors];
      unrolled<Vectors>([&]<std::size_t V>() DIST_INLINE_LAMBDA { load<Bytes>(terms_of_k[V], from + V * lanes); });
      unrolled<Rows>([&]<std::size_t Row>() DIST_INLINE_LAMBDA {
        const T factor = factors[Row * a_row];
        unrolled<Vectors>([&]<std::size_t V>() DIST_INLINE_LAMBDA { sums[Row][V] += terms_of_k[V] * factor; });
      });
    }
    unrolled<Rows * Vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
      store<Bytes>(sums[At / Vectors][At % Vectors], to + At / Vectors * c_row + At % Vectors * lanes);
    });
  }
};

}  // namespace dist::nn::kernels
