// Library features in kernel bodies: reduction objects, and indexing of views.
// GPUs: 1
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace {

using InBody = dist::TensorView<float, dist::BodyMemory>;

/// Row r of a table: its maximum, its minimum and their sum.
struct Extremes {
  InBody table;
  InBody of_rows;
  DIST_HD void operator()(std::size_t row) const {
    float most = table(row, 0), least = most;
    for (std::size_t column = 1; column < table.shape()[1]; ++column) {
      most = dist::max(most, table(row, column));
      least = dist::min(least, table[row * table.row_size() + column]);
    }
    of_rows(row, 0) = most;
    of_rows(row, 1) = least;
    of_rows(row, 2) = dist::sum(most, least);
  }
};

}  // namespace

TEST_CASE("bodies index device views, and combine numbers with reduction objects") {
  constexpr std::array<std::size_t, 1> one_device{0};
  constexpr std::size_t rows = 300, columns = 4;
  const dist::Cuda::Queues queues{one_device};
  dist::Cuda::Memory memory{one_device};
  const auto view = [&](std::size_t width) {
    auto* const first = reinterpret_cast<float*>(memory.at(0, memory.allocate(rows * width * sizeof(float))));
    return dist::TensorView<float, dist::Cuda::Space>{first, dist::Shape{rows, width}};
  };
  const auto table = view(columns), of_rows = view(3);
  std::vector<float> numbers(rows * columns), seen(rows * 3);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7 % 101);
  queues[0].copy(std::span<const float>{numbers}, table.elements());
  queues[0].for_each({0, rows}, Extremes{table.in_body(), of_rows.in_body()});
  queues[0].copy(of_rows.elements(), std::span<float>{seen});
  queues[0].wait();
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    float most = numbers[row * columns], least = most;
    for (std::size_t column = 1; column < columns; ++column) {
      most = dist::max(most, numbers[row * columns + column]);
      least = dist::min(least, numbers[row * columns + column]);
    }
    wrong += seen[3 * row] != most || seen[3 * row + 1] != least || seen[3 * row + 2] != most + least;
  }
  CHECK(wrong == 0);
}
