#include <dist/nn/metrics/cell_counts.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <dist/device/cpu.hpp>

namespace nn = dist::nn;

namespace {

/// Counts outputs by their integer part.
struct Histogram {
  std::string_view name = "histogram";
  void check() const {}
  [[nodiscard]] static dist::Shape shape() { return {4}; }
  template <class T, class Target, class Add>
  void for_each_bin(nn::Row<const T> outputs, nn::Row<const Target>, const Add& add) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) add(static_cast<std::size_t>(outputs[i]));
  }
  [[nodiscard]] static double result(dist::TensorView<const double> counts) { return counts[0]; }
};
struct WithoutShape {
  void check() const {}
  [[nodiscard]] static double result(dist::TensorView<const double>) { return 0; }
};

}  // namespace

static_assert(nn::CountingMetric<Histogram> && !nn::CountingMetric<WithoutShape>);

TEST_CASE("rows count into cells with their weights, by row and by cell") {
  dist::Tensor<float> outputs{dist::Shape{3, 2}};
  for (std::size_t i = 0; i < 6; ++i) outputs[i] = static_cast<float>(i * i % 4) + 0.5F;  // 0, 1, 0, 1, 0, 1
  outputs[5] = 3;
  const dist::Tensor<int> targets{dist::Shape{3, 2}};
  dist::Tensor<float> weights{dist::Shape{3}};
  weights[0] = 2, weights[1] = 0, weights[2] = 0.5F;
  std::vector<double> counts(4, 1);
  nn::detail::count_cells(dist::Cpu::Queue{}, Histogram{}, std::span{counts}, outputs, targets);
  CHECK(counts == std::vector<double>{4, 3, 1, 2});
  counts.assign(4, 1);
  nn::detail::count_cells(dist::Cpu::Queue{}, Histogram{}, std::span{counts}, outputs, targets, weights);
  CHECK(counts == std::vector<double>{3.5, 3, 1, 1.5});
  std::vector<double> by_cell(4, 1);
  const nn::detail::CountIntoCell<Histogram, float, int, nn::detail::GivenWeight<float, float>> into_cell{
      Histogram{}, outputs.data(), targets.data(), 2, 2, 3, {weights.data(), 1}, by_cell.data()};
  for (std::size_t cell = 0; cell < 4; ++cell) into_cell(cell);
  CHECK(by_cell == counts);
}

TEST_CASE("a column is computed only if a row may count in the cell (spec P15)") {
  const nn::detail::GivenWeight<float, float> weight{nullptr, 1};
  double counted = 0;
  const nn::detail::AddIfCell<nn::detail::GivenWeight<float, float>> add{5, 0, weight, counted};
  std::size_t asked = 0;
  const auto column = [&] {
    ++asked;
    return std::size_t{0};
  };
  add.one_of(0, 4, column);
  add.one_of(2, 4, column);
  CHECK(asked == 0);
  add.one_of(1, 4, column);
  CHECK((asked == 1 && counted == 0));
  double counts[8] = {};
  nn::detail::AddToCell{counts, 3}.one_of(1, 4, [] { return std::size_t{2}; });
  CHECK(counts[6] == 3);
}
