#include <dist/nn/cuda/column_sums.cuh>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

namespace cudnn = dist::nn::cuda;

namespace {

/// Sums the elements, and the elements times their column index.
struct TwoSums {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const float* matrix;
  std::size_t columns;
  template <class Sums>
  DIST_HD void operator()(std::size_t row, std::size_t column, Sums&& sums) const {
    const auto element = static_cast<double>(matrix[row * columns + column]);
    sums[0] += element;
    sums[1] += element * static_cast<double>(column);
  }
};

}  // namespace

TEST_CASE("column sums of no rows, few rows and many rows are exact") {
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  cudnn::State state{queue};
  constexpr std::size_t columns = 3;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{700}}) {
    CAPTURE(rows);
    std::vector<float> matrix(rows * columns);
    std::array<double, 2 * columns> expected{};
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      matrix[i] = static_cast<float>(i % 7) - 2;  // sums are exact
      expected[i % columns] += static_cast<double>(matrix[i]);
      expected[columns + i % columns] += static_cast<double>(matrix[i]) * static_cast<double>(i % columns);
    }
    const cudnn::Memory<float> elements{queue, matrix.size() + 1};
    const cudnn::Memory<double> sums{queue, 2 * columns};
    const dist::Cuda::Span<float> there{elements.data(), matrix.size()};
    const dist::Cuda::Span<double> of_columns{sums.data(), 2 * columns};
    queue.copy(std::span<const float>{matrix}, there);
    queue.fill(of_columns, 99.0);  // to be overwritten
    cudnn::sum_columns(state, rows, columns, TwoSums{elements.data(), columns}, sums.data());
    std::array<double, 2 * columns> found{};
    queue.copy(of_columns, std::span<double>{found});
    queue.wait();
    CHECK(found == expected);
  }
}
