#define DIST_DISPATCH_VECTORS 1  // all widths of the processor
#include <dist/nn/kernels/matrix_product.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "nn/kernels/widths.hpp"

namespace kernels = dist::nn::kernels;
using kernels::Terms;

namespace {

struct Sizes {
  std::size_t rows, depth, columns;
};

/// True if the product has the term, or the result is specified at all.
bool has_term(Terms terms, std::size_t row, std::size_t k) {
  return terms == Terms::depth_to_row ? k <= row : terms != Terms::depth_from_row || k >= row;
}

template <class T>
void check(Sizes of, bool transposed, bool adds, Terms terms) {
  const std::size_t room = (of.columns * sizeof(T) + 63) / 64 * 64 / sizeof(T);
  std::vector<T> a = numbers<T>(of.rows * of.depth, 1);
  const std::size_t a_row = transposed ? 1 : of.depth;
  const std::size_t a_k = transposed ? of.rows : 1;
  for (std::size_t row = 0; row < of.rows; ++row)
    for (std::size_t k = 0; k < of.depth; ++k)
      if (!has_term(terms, row, k)) a[row * a_row + k * a_k] = 0;
  const std::vector<T> b = numbers<T>(of.depth * room, 2);
  for_each_width([&](auto at_width) {
    std::vector<T> c = numbers<T>(of.rows * room, 3);
    const std::vector<T> before = c;
    at_width(kernels::MatrixProduct<T>{.rows = of.rows,
                                       .depth = of.depth,
                                       .columns = of.columns,
                                       .a = a.data(),
                                       .a_row = a_row,
                                       .a_k = a_k,
                                       .b = b.data(),
                                       .b_row = room,
                                       .c = c.data(),
                                       .c_row = room,
                                       .adds = adds,
                                       .terms = terms});
    double worst = 0;
    for (std::size_t row = 0; row < of.rows; ++row) {
      for (std::size_t column = 0; column < of.columns; ++column) {
        if (terms == Terms::columns_to_row && column > row) continue;
        double sum = adds ? double(before[row * room + column]) : 0.0;
        for (std::size_t k = 0; k < of.depth; ++k) sum += double(a[row * a_row + k * a_k]) * b[k * room + column];
        worst = std::max(worst, std::abs(double(c[row * room + column]) - sum));
      }
    }
    CHECK(worst < 1e-5);
  });
}

}  // namespace

TEST_CASE("products of blocks are right for all sizes and parts, in place and transposed") {
  for (const Sizes sizes : {Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{64, 64, 64}, Sizes{13, 13, 33}, Sizes{8, 0, 16}}) {
    CAPTURE(sizes.rows);
    for (const bool transposed : {false, true}) {
      for (const bool adds : {false, true}) {
        for (const Terms terms : {Terms::all, Terms::columns_to_row, Terms::depth_to_row, Terms::depth_from_row}) {
          check<float>(sizes, transposed, adds, terms);
          check<double>(sizes, transposed, adds, terms);
        }
      }
    }
  }
}
