#include <dist/nn/row.hpp>

#include <array>
#include <cstddef>
#include <vector>

#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace detail = dist::nn::detail;
using dist::nn::Reference;
using List = std::vector<double>;

namespace {

Reference::State state;
const List x{1, 10, 2, -20, 4, 30};
const List dy{1, -1, 2, 0, 3, 5};
constexpr double means[] = {1, 2};

template <class Body>
void for_each_pixel(const Body& body) {
  detail::for_each_row<Reference>(state, 3, 2, body);
}

}  // namespace

TEST_CASE("SumsOfElements computes sums and sums of squares per channel") {
  std::array<double, 4> sums{9, 9, 9, 9};
  detail::sum_columns<Reference>(state, 3, 2, detail::SumsOfElements<2, double>{x.data()}, sums.data());
  CHECK(sums == std::array<double, 4>{7, 20, 1 + 4 + 16, 100 + 400 + 900});
  detail::sum_columns<Reference>(state, 0, 2, detail::SumsOfElements<2, double>{x.data()}, sums.data());
  CHECK(sums == std::array<double, 4>{});
}

TEST_CASE("sums of floats are in double") {
  const std::vector<float> many(1 << 15, 4097.0F);
  std::array<double, 2> sums{};
  detail::sum_columns<Reference>(state, many.size(), 1, detail::SumsOfElements<1, float>{many.data()}, sums.data());
  CHECK(sums[1] == 4097.0 * 4097.0 * (1 << 15));
}

TEST_CASE("NormalizePixel computes (x - mean) * scale + shift") {
  List y(6);
  const double scale[] = {3, 4}, shift[] = {5, 6};
  for_each_pixel(detail::NormalizePixel<2, double>{x.data(), means, scale, shift, y.data()});
  CHECK(y == List{5, 38, 8, -82, 14, 118});
}

TEST_CASE("SumsOfGradients and GradientOfPixel compute the gradients of a normalisation") {
  std::array<double, 4> sums{};
  detail::sum_columns<Reference>(state, 3, 2, detail::SumsOfGradients<2, double>{x.data(), dy.data(), means},
                                 sums.data());
  CHECK(sums == std::array<double, 4>{6, 4, 0 + 2 + 9, -8 + 0 + 140});
  List dx(6);
  const double scale[] = {10, 1}, of_x[] = {2, 3}, shift[] = {0.5, 0};
  for_each_pixel(detail::GradientOfPixel<2, double>{x.data(), dy.data(), means, scale, of_x, shift, dx.data()});
  CHECK(dx == List{10.5, 23, 22.5, -66, 36.5, 89});
}
