#include <dist/hlo/operations.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using testing::Floats;
using testing::Numbers;

TEST_CASE("operations that change shapes place elements correctly") {
  const auto [rows, columns, reshaped, transposed, range, part, joined, padded, backwards] =
      testing::run<Floats<2, 3>, Floats<3>>(
          1,
          [](auto x, auto y) {
            return std::tuple{hlo::broadcast<Floats<2, 3>, 1>(y),
                              hlo::broadcast<Floats<3, 2>, 0>(y),
                              hlo::reshape<3, 2>(x),
                              hlo::transpose<1, 0>(x),
                              hlo::iota<hlo::Traced<std::int32_t, 2, 3>, 1>(),
                              hlo::slice<1, 1, 2>(x),
                              hlo::concatenate<1>(x, hlo::slice<1, 0, 1>(x)),
                              hlo::pad<0, 1, 2>(y, 4.0F),
                              hlo::reverse<0, 1>(x)};
          },
          Numbers{{2, 3}, {1, 2, 3, 4, 5, 6}}, Numbers{{3}, {7, 8, 9}});
  CHECK(rows == Numbers{{2, 3}, {7, 8, 9, 7, 8, 9}});
  CHECK(columns == Numbers{{3, 2}, {7, 7, 8, 8, 9, 9}});
  CHECK(reshaped == Numbers{{3, 2}, {1, 2, 3, 4, 5, 6}});
  CHECK(transposed == Numbers{{3, 2}, {1, 4, 2, 5, 3, 6}});
  CHECK(range == Tensor<std::int32_t>{{2, 3}, {0, 1, 2, 0, 1, 2}});
  CHECK(part == Numbers{{2, 2}, {2, 3, 5, 6}});
  CHECK(joined == Numbers{{2, 4}, {1, 2, 3, 1, 4, 5, 6, 4}});
  CHECK(padded == Numbers{{6}, {4, 7, 8, 9, 4, 4}});
  CHECK(backwards == Numbers{{2, 3}, {6, 5, 4, 3, 2, 1}});
}

TEST_CASE("contractions and reductions use the given axes") {
  const auto [product, outer, inner, all, of_rows, most, least, of_columns] =
      testing::run<Floats<2, 3>, Floats<3, 2>, Floats<3>>(
          1,
          [](auto a, auto b, auto v) {
            return std::tuple{hlo::contract<1, 0>(a, b),       hlo::contract<0, 1>(a, b),
                              hlo::contract<0, 0>(v, v),       hlo::reduce(dist::sum, a),
                              hlo::reduce<1>(dist::sum, a),    hlo::reduce<0>(dist::max, a - 10),
                              hlo::reduce<0, 1>(dist::min, a), hlo::reduce<0>(dist::prod, a)};
          },
          Numbers{{2, 3}, {1, 2, 3, 4, 5, 6}}, Numbers{{3, 2}, {1, 0, 0, 1, 2, -1}}, Numbers{{3}, {1, 2, 3}});
  CHECK(product == Numbers{{2, 2}, {7, -1, 16, -1}});
  CHECK(outer == Numbers{{3, 3}, {1, 4, -2, 2, 5, -1, 3, 6, 0}});
  CHECK(inner == Numbers{{}, {14}});
  CHECK(all == Numbers{{}, {21}});
  CHECK(of_rows == Numbers{{2}, {6, 15}});
  CHECK(most == Numbers{{3}, {-6, -5, -4}});
  CHECK(least == Numbers{{}, {1}});
  CHECK(of_columns == Numbers{{3}, {4, 10, 18}});
}

TEST_CASE("contractions sum over several axes, and compute separate products along batch axes") {
  using hlo::Axes;
  const auto [products, sums, whole] = testing::run<Floats<2, 2, 3>, Floats<3, 2, 2>>(
      1,
      [](auto a, auto b) {
        return std::tuple{hlo::contract<Axes<2>, Axes<0>, Axes<0>, Axes<1>>(a, b),
                          hlo::contract<Axes<1, 2>, Axes<2, 0>>(a, b),
                          hlo::contract<Axes<2, 0, 1>, Axes<2, 0, 1>>(a, a)};
      },
      Numbers{{2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
      Numbers{{3, 2, 2}, {1, 0, 2, 1, 0, 3, 1, 1, 2, 2, 0, 1}});
  // First pair: [1 2 3; 4 5 6] [1 0; 0 3; 2 2], second pair: [7 8 9; 10 11 12] [2 1; 1 1; 0 1].
  CHECK(products == Numbers{{2, 2, 2}, {7, 12, 16, 27, 22, 24, 31, 33}});
  // Element (i, j) is the sum over (k, l) of a(i, k, l) b(l, j, k).
  CHECK(sums == Numbers{{2, 2}, {34, 19, 82, 55}});
  CHECK(whole == Numbers{{}, {650}});
}
