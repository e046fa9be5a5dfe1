#include <dist/nn/cuda/rows.cuh>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>
#include <support/on_host.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// Writes the sum and the maximum of a row to the row's first two places, and doubles the elements.
struct SumMaxDouble {
  float* elements;
  float* to;
  std::size_t size;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    float* const first = elements + row * size;
    const float sum = sum_of(threads, [&](std::size_t k) { return first[k]; });
    const float largest = max_of(threads, [&](std::size_t k) { return first[k]; });
    for_each_of(threads, [&](std::size_t k) { first[k] = first[k] * 2; });
    if (threads.is_first()) to[2 * row] = sum, to[2 * row + 1] = largest;
  }
};

}  // namespace

TEST_CASE("each row has its own threads, for no, few and many elements") {
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  nn::cuda::State state{queue};
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{70}})
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{700}, std::size_t{2000}}) {
      CAPTURE(rows);
      CAPTURE(size);
      std::vector<float> elements(rows * size), expected(2 * rows, -1), doubled(rows * size);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<float>((i * 5) % 7) - 2;  // sums are exact
        doubled[i] = 2 * elements[i];
      }
      for (std::size_t row = 0; size > 0 && row < rows; ++row) {
        const std::span of_row = std::span{elements}.subspan(row * size, size);
        expected[2 * row] = std::accumulate(of_row.begin(), of_row.end(), 0.0F);
        expected[2 * row + 1] = *std::ranges::max_element(of_row);
      }
      const nn::cuda::Memory<float> there{queue, elements.size() + 1}, to{queue, 2 * rows + 1};
      const dist::Cuda::Span<float> values{there.data(), elements.size()}, results{to.data(), 2 * rows};
      queue.copy(std::span<const float>{elements}, values);
      queue.fill(results, -1.0F);
      nn::cuda::for_each_row(state, rows, size, SumMaxDouble{there.data(), to.data(), size});
      CHECK(std::ranges::equal(support::on_host(queue, results), expected));
      CHECK(std::ranges::equal(support::on_host(queue, values), doubled));
    }
}
