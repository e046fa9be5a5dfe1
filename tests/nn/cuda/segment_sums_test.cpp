#include <dist/nn/cuda/segment_sums.cuh>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>
#include <support/on_host.hpp>

#include <doctest/doctest.h>

namespace cudnn = dist::nn::cuda;

namespace {

/// Of the elements of a segment, and of those times their number in it.
struct TwoSums {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const float* elements;
  std::size_t size;
  DIST_HD void operator()(std::size_t segment, std::size_t term, double (&sums)[count]) const {
    const auto element = static_cast<double>(elements[segment * size + term]);
    sums[0] += element;
    sums[1] += element * static_cast<double>(term);
  }
};

}  // namespace

TEST_CASE("sums of segments, of no term, of few and of many") {
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  cudnn::State state{queue};
  for (const std::size_t segments : {std::size_t{0}, std::size_t{1}, std::size_t{3}})
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{700}, std::size_t{9000}}) {
      CAPTURE(segments);
      CAPTURE(size);
      std::vector<float> elements(segments * size);
      std::vector<double> expected(2 * segments);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<float>(i % 7) - 2;  // whose sums are exact
        expected[2 * (i / size)] += static_cast<double>(elements[i]);
        expected[2 * (i / size) + 1] += static_cast<double>(elements[i]) * static_cast<double>(i % size);
      }
      const cudnn::Memory<float> there{queue, elements.size() + 1};
      queue.copy(std::span<const float>{elements}, dist::Cuda::Span<float>{there.data(), elements.size()});
      const double* const sums = cudnn::sum_segments(state, segments, size, TwoSums{there.data(), size});
      const auto found = support::on_host(queue, dist::Cuda::Span<const double>{sums, expected.size()});
      CHECK(std::ranges::equal(found, expected));
    }
}
