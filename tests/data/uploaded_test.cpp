// Tests of batches in the memory of GPUs, and of the host's waits.
#include <dist/data/uploaded.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/core/error.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/handles.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/what_throws.hpp>

using dist::Cuda;
using dist::Tensor;
using std::chrono::milliseconds;

namespace {

constexpr std::array<std::size_t, 2> devices{0, 0};
constexpr std::size_t rows = 24, global_batch = 4;

/// The work of a step: adds its rows to its result.
struct Add {
  const float* x;
  const int* y;
  float* sums;
  DIST_HD void operator()(std::size_t i) const { sums[i] += x[i] * static_cast<float>(y[i]); }
};

auto examples(std::size_t count = rows) {
  Tensor<float> x{{count, 1}};
  Tensor<int> y{{count}};
  for (std::size_t row = 0; row < count; ++row) {
    x[row] = static_cast<float>(row);
    y[row] = static_cast<int>(row % 5);
  }
  return dist::data::tensor_slices(std::move(x), std::move(y)) | dist::data::batch(global_batch);
}

auto distributed(const Cuda::Queues& queues, std::size_t ahead, std::size_t count = rows) {
  dist::data::InputOptions options;
  options.fetch_ahead = ahead;
  return dist::data::uploaded<Cuda>(
      dist::data::distribute_dataset(examples(count), 2, dist::InputContext{1, 0, 2}, options), queues, 2, ahead);
}

/// Batches that count their passes.
struct CountedPasses : decltype(examples()) {
  int* passes;
  [[nodiscard]] auto iterate(std::uint64_t epoch) const {
    ++*passes;
    return decltype(examples())::iterate(epoch);
  }
};

/// Steps on two queues of one GPU.
class Replicas {
 public:
  explicit Replicas(std::chrono::nanoseconds timeout = dist::cuda::longest_wait) : queues(devices, timeout) {}

  template <class Batches>
  void step(const Batches& batches) const {
    for (std::size_t replica = 0; replica < 2; ++replica) {
      const auto& batch = batches[replica];
      queues[replica].for_each({0, batch.x.rows()}, Add{batch.x.data(), batch.y.data(), sums(replica).data()});
    }
  }
  [[nodiscard]] std::vector<float> results() const {
    std::vector<float> all(4);
    for (std::size_t replica = 0; replica < 2; ++replica)
      queues[replica].copy(sums(replica), std::span<float>{all}.subspan(2 * replica, 2));
    for (std::size_t replica = 0; replica < 2; ++replica) queues[replica].wait();
    return all;
  }
  [[nodiscard]] Cuda::Span<float> sums(std::size_t replica) const {
    return {reinterpret_cast<float*>(memory_.at(replica, offset_)), 2};
  }

  Cuda::Queues queues;

 private:
  mutable Cuda::Memory memory_{devices};
  std::size_t offset_ = memory_.allocate(2 * sizeof(float));
};

std::vector<float> expected(int epochs) {
  std::vector<float> sums(4);
  for (std::size_t row = 0; row < rows; ++row)
    sums[row % 4] += static_cast<float>(epochs) * static_cast<float>(row * (row % 5));
  return sums;
}

}  // namespace

TEST_CASE("steps find their batches on the device, however far the host runs ahead") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule())
    for (const std::size_t ahead : {0UL, 1UL, 3UL}) {
      CAPTURE(fake_cuda::to_string(machine));
      CAPTURE(ahead);
      fake_cuda::restart(machine);
      {
        const Replicas replicas;
        auto dataset = distributed(replicas.queues, ahead);
        CHECK(dataset.num_replicas() == 2);
        CHECK(dataset.cardinality() == dist::data::Cardinality::known(rows / global_batch));
        for (int epoch = 0; epoch < 3; ++epoch)
          for (const auto& batches : dataset) replicas.step(batches);
        CHECK(replicas.results() == expected(3));
        // The slots of one pass are reused by the next.
        CHECK(fake_cuda::live().pinned_allocations <= 2 * (ahead + 1) + 2);
      }
      CHECK(fake_cuda::live() == fake_cuda::Live{});
    }
}

TEST_CASE("the host waits for a step only if all slots are in use") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  const Replicas replicas;
  auto dataset = distributed(replicas.queues, 3);
  auto pass = dataset.iterate(0);
  decltype(dataset)::Element batches;
  const std::size_t before = fake_cuda::counts().operations_run;
  for (int step = 0; step < 4; ++step) {
    REQUIRE(pass.next(batches));
    replicas.step(batches);
  }
  CHECK(fake_cuda::counts().operations_run == before);
  REQUIRE(pass.next(batches));
  CHECK(fake_cuda::counts().operations_run > before);
  replicas.step(batches);
  while (pass.next(batches)) replicas.step(batches);
  CHECK(replicas.results() == expected(1));
}

TEST_CASE("a batch is one copy per replica, and supports arrays in tuples, pairs and arrays") {
  using dist::TensorView;
  using dist::cuda::DeviceMemory;
  using View = TensorView<const float>;
  using There = TensorView<const float, DeviceMemory>;
  using dist::data::detail::ViewsIn;
  static_assert(std::is_same_v<ViewsIn<std::tuple<View, TensorView<const int>>, DeviceMemory>::type,
                               std::tuple<There, TensorView<const int, DeviceMemory>>>);
  static_assert(std::is_same_v<ViewsIn<std::pair<View, View>, DeviceMemory>::type, std::pair<There, There>>);
  static_assert(std::is_same_v<ViewsIn<std::array<View, 2>, DeviceMemory>::type, std::array<There, 2>>);
  fake_cuda::restart({});
  const Replicas replicas;
  auto dataset = distributed(replicas.queues, 1);
  auto pass = dataset.iterate(0);
  const std::size_t before = fake_cuda::counts().copies;
  const auto batches = pass.get_next_as_optional();
  REQUIRE(batches);
  CHECK(fake_cuda::counts().copies == before + 2);
  CHECK((*batches)[1].x.shape() == dist::Shape{2, 1});
  CHECK((*batches)[1].y.shape() == dist::Shape{2});
}

TEST_CASE("a batch expires after its step, and replicas without rows receive empty views") {
  fake_cuda::restart({});
  const Replicas replicas;
  auto dataset = distributed(replicas.queues, 1, 1);
  auto pass = dataset.iterate(0);
  decltype(dataset)::Element batches;
  REQUIRE(pass.next(batches));
  CHECK(batches[0].x.rows() == 1);
  CHECK(batches[1].x.rows() == 0);
  const auto kept = batches[0].x;
  CHECK_FALSE(pass.next(batches));
  float value = 0;
  replicas.queues[0].copy(kept.elements(), std::span<float>{&value, 1});
  replicas.queues[0].wait();
  CHECK(value != value);  // a view that is used after its step contains NaN
}

TEST_CASE("a pass over uploaded batches is resumable") {
  fake_cuda::restart({});
  const Replicas replicas;
  auto dataset = distributed(replicas.queues, 1);
  auto pass = dataset.iterate(0);
  pass.seek(rows / global_batch - 1);
  decltype(dataset)::Element batches;
  REQUIRE(pass.next(batches));
  CHECK(pass.position() == rows / global_batch);
  float first = 0;
  replicas.queues[0].copy(batches[0].x.elements().first(1), std::span<float>{&first, 1});
  replicas.queues[0].wait();
  CHECK(first == static_cast<float>(rows - global_batch));
  CHECK_FALSE(pass.next(batches));
}

TEST_CASE("a resumed pass begins the dataset once") {
  fake_cuda::restart({});
  const Replicas replicas;
  int passes = 0;
  auto dataset = dist::data::uploaded<Cuda>(CountedPasses{examples(), &passes}, replicas.queues, 1, 1);
  auto pass = dataset.iterate(0);
  pass.seek(2);
  decltype(dataset)::Element batch;
  CHECK(pass.next(batch));
  CHECK(pass.position() == 3);
  CHECK(passes == 1);
}

TEST_CASE("a step that does not end throws DeadlineExceeded, and lack of memory an error") {
  fake_cuda::restart({});
  bool may_end = false;
  {
    const Replicas replicas{milliseconds{20}};
    auto dataset = distributed(replicas.queues, 0);
    auto pass = dataset.iterate(0);
    decltype(dataset)::Element batches;
    REQUIRE(pass.next(batches));
    fake_cuda::put_for_library(
        replicas.queues[1].stream().get(), "a slow step", [] {}, [&] { return may_end; });
    const std::string late = support::what_throws<dist::DeadlineExceeded>([&] { pass.next(batches); });
    CHECK(late.find("the input of queue 1 of GPU 0") != std::string::npos);
    may_end = true;
    CHECK(pass.next(batches));
  }
  fake_cuda::restart({});
  const Replicas replicas;
  auto dataset = distributed(replicas.queues, 1);
  auto pass = dataset.iterate(0);
  decltype(dataset)::Element batches;
  fake_cuda::fail_call("cudaMalloc", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(pass.next(batches), dist::OutOfMemory);
  CHECK(pass.next(batches));
}
