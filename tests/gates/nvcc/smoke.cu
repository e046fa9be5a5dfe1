// Host code from nvcc on the fake GPU: it registers kernels, and launches them with unchanged arguments. The kernels
// themselves run as functions from the host's compiler (smoke_twins.cpp).
#define DIST_SMOKE_SIDE of_nvcc
#include "smoke.cuh"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machines.hpp>
#include <support/stderr_of.hpp>

using dist::Cuda;
using namespace smoke::of_nvcc;

namespace {

template <auto... kernels>
void set_twins(Kernels<kernels...>) {
  std::size_t next = 0;
  (fake_cuda::set_twin(reinterpret_cast<const void*>(kernels), smoke::twins[next++]), ...);
}
const bool twins_are_set = [] {
  set_twins(All{});
  return true;
}();

constexpr std::array<std::size_t, 1> one_device{0};

/// GPU memory for elements.
class Array {
 public:
  template <class T>
  Cuda::Span<T> of(std::size_t count) {
    return {reinterpret_cast<T*>(memory_.at(0, memory_.allocate(count * sizeof(T)))), count};
  }

 private:
  Cuda::Memory memory_{one_device};
};

}  // namespace

TEST_CASE("nvcc's host code registers each kernel by its own name") {
  REQUIRE(twins_are_set);
  const std::vector<std::string> names = fake_cuda::registered_kernels();
  const auto count = [&](const std::string& part) {
    return std::count_if(names.begin(), names.end(),
                         [&](const std::string& name) { return name.find(part) != std::string::npos; });
  };
  CHECK(count("for_each_kernel<smoke::of_nvcc::Saxpy>") == 1);
  CHECK(count("reduce_kernel<double, smoke::of_nvcc::Total, smoke::of_nvcc::SquareOf>") == 1);
  CHECK(count("finish_kernel<double, double, smoke::of_nvcc::Total>") == 1);
  CHECK(count("note_arguments") == 1);
}

TEST_CASE("a launch passes on its arguments, grid and block") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  Array memory;
  const dim3 blocks{2, 3, 2}, threads{4, 2, 3};
  constexpr std::size_t count = 2 * 3 * 2 * 4 * 2 * 3;
  const auto there = memory.of<Seen>(count);
  queues[0].enter();
  dist::cuda::launch(queues[0].stream(), blocks, threads, &note_arguments, 'a', 0.1, Odd{{'x', 'y', 'z'}}, true,
                     Wide{1, 2, 3, 4}, 7, dist::IndexRange{5, std::size_t{1} << 40}, there.data());
  std::vector<Seen> seen(count);
  queues[0].copy(there, std::span<Seen>{seen});
  queues[0].wait();
  for (unsigned i = 0; i < count; ++i) {
    CAPTURE(i);
    const Seen& one = seen[i];
    const bool is_as_given = one.letter == 'a' && one.value == 0.1 && one.last == 'z' && one.flag && one.w == 4 &&
                             one.number == 7 && one.end == std::size_t{1} << 40;
    CHECK(is_as_given);
    const bool has_place = one.block * 24 + one.thread == i && one.threads == 24 && one.blocks == 12;
    CHECK(has_place);
  }
}

TEST_CASE("for_each and transform_reduce return the host's values in every schedule") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Cuda::Queues queues{one_device};
    Array memory;
    constexpr std::size_t count = 10'000;  // several blocks in a reduction
    std::vector<float> x(count), y(count, 1.0F), got(count);
    std::vector<double> values(count);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = static_cast<float>(i);
      values[i] = static_cast<double>(i % 100);
      squares += values[i] * values[i];
    }
    const auto x_there = memory.of<float>(count), y_there = memory.of<float>(count);
    const auto values_there = memory.of<double>(count);
    queues[0].copy(std::span<const float>{x}, x_there);
    queues[0].copy(std::span<const float>{y}, y_there);
    queues[0].copy(std::span<const double>{values}, values_there);
    queues[0].for_each({10, count}, Saxpy{x_there.data(), y_there.data(), 2.0F});
    CHECK(queues[0].transform_reduce(Total{}, {0, count}, SquareOf{values_there.data()}) == squares);
    queues[0].copy(y_there, std::span<float>{got});
    queues[0].wait();
    for (std::size_t i = 10; i < count; ++i) y[i] = 2.0F * x[i] + y[i];
    CHECK(got == y);
    CHECK(fake_cuda::counts().kernels == 3);
  }
}

TEST_CASE("a host address among the arguments is rejected with the kernel's name") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  std::vector<float> here(10);
  CHECK_THROWS_WITH_AS(queues[0].for_each({0, 10}, Saxpy{here.data(), here.data(), 1.0F}),
                       doctest::Contains("smoke::of_nvcc::Saxpy"), dist::HostPointer);
}

TEST_CASE("a kernel without a twin is rejected") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  const auto ending = testing::stderr_of([&] { queues[0].for_each({0, 10}, Nothing{}); });
  CHECK(ending.aborted);
  CHECK(ending.says(
      "for_each_kernel<smoke::of_nvcc::Nothing>(smoke::of_nvcc::Nothing, dist::IndexRange)' of nvcc has no twin"));
}
