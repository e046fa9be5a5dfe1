#include <dist/device/cuda/graph.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/device/cuda/device.cuh>
#include <support/apply.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/what_throws.hpp>

using dist::cuda::Graph;

static_assert(dist::CapturesWork<dist::Cuda>);

namespace {

using Apply = support::Apply<std::int64_t>;

struct ValueAt {
  const std::int64_t* x;
  DIST_HD std::int64_t operator()(std::size_t) const { return *x; }
};

}  // namespace

TEST_CASE("captured work of several queues runs on each launch, with the last arguments") {
  for (fake_cuda::Options machine : fake_cuda::every_schedule()) {
    machine.devices = 2;
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    {
      const std::array<std::size_t, 2> devices{0, 1};
      const dist::Cuda::Queues queues{devices};
      const auto memory = dist::cuda::Memory::on_host(devices);
      auto* const x = reinterpret_cast<std::int64_t*>(memory->at(0, memory->allocate(sizeof(std::int64_t))));
      const dist::cuda::Queue first = queues[0], second = queues[1];
      dist::cuda::Queue::Event fork{first}, join{second};
      const auto put = [&](std::int64_t term) {
        first.record(fork);
        second.wait_for(fork);
        second.for_each({0, 1}, Apply{x, 3, term});
        second.record(join);
        first.wait_for(join);
      };
      Graph graph{{first, second}};
      const auto capture = [&](std::int64_t term, bool twice) {
        Graph::Capture step{graph};
        put(term);
        if (twice) put(term);
        step.end();
      };
      first.for_each({0, 1}, Apply{x, 1, 1});  // 1
      capture(1, false);
      CHECK(fake_cuda::counts().graph_launches == 0);
      graph.launch();  // 4
      graph.launch();  // 13
      capture(2, false);
      graph.launch();  // 41
      CHECK(graph.instantiations() == 1);
      capture(0, true);
      graph.launch();  // 369
      CHECK(graph.instantiations() == 2);
      std::int64_t value = 0;
      first.copy(dist::DeviceSpan<const std::int64_t, dist::cuda::DeviceMemory>{x, 1}, std::span{&value, 1});
      CHECK(value == 369);
      CHECK(fake_cuda::live().graphs == 1);
    }
    CHECK(fake_cuda::live() == fake_cuda::Live{});
  }
}

TEST_CASE("copies of a step to the host belong to that step, even after its graph was replaced") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const std::array<std::size_t, 1> devices{0};
    const dist::Cuda::Queues queues{devices};
    const dist::cuda::Queue queue = queues[0];
    const dist::cuda::DeviceBuffer there{0, sizeof(std::int64_t)};
    auto* const x = reinterpret_cast<std::int64_t*>(there.data());
    queue.fill(dist::DeviceSpan<std::int64_t, dist::cuda::DeviceMemory>{x, 1}, 0);
    std::vector<dist::Pending<std::int64_t, dist::cuda::Queue>> sums{
        queue.start_transform_reduce(dist::sum, {0, 1}, ValueAt{x})};  // allocates outside the capture
    {
      Graph graph{{queue}};
      for (int step = 0; step < 4; ++step) {
        queue.for_each({0, 1}, Apply{x, 0, 10 * step});
        {
          Graph::Capture capture{graph};
          for (int more = 0; more < step; ++more) queue.for_each({0, 1}, Apply{x, 1, 1});
          sums.push_back(queue.start_transform_reduce(dist::sum, {0, 1}, ValueAt{x}));
          capture.end();
        }
        graph.launch();
      }
      CHECK(graph.instantiations() == 4);
    }
    CHECK(sums[0].value() == 0);
    for (int step = 0; step < 4; ++step) CHECK(sums[static_cast<std::size_t>(step) + 1].value() == 11 * step);
  }
}

TEST_CASE("an aborted capture leaves the queues and the graph unchanged") {
  fake_cuda::restart({});
  const std::array<std::size_t, 1> devices{0};
  const dist::Cuda::Queues queues{devices};
  const dist::cuda::DeviceBuffer there{0, sizeof(std::int64_t)};
  auto* const x = reinterpret_cast<std::int64_t*>(there.data());
  const dist::cuda::Queue queue = queues[0];
  queue.for_each({0, 1}, Apply{x, 0, 1});
  Graph graph{{queue}};
  std::int64_t before = -1, during = -1;
  const dist::DeviceSpan<const std::int64_t, dist::cuda::DeviceMemory> from{x, 1};
  queue.copy(from, std::span{&before, 1});
  {
    Graph::Capture step{graph};
    queue.for_each({0, 1}, Apply{x, 1, 1});
    step.end();
  }
  {
    const Graph::Capture dropped{graph};
    queue.for_each({0, 1}, Apply{x, 0, 100});
    queue.copy(from, std::span{&during, 1});
    CHECK_THROWS_AS(static_cast<void>(queue.transform_reduce(dist::sum, {0, 1}, dist::detail::FloatOfIndex{})),
                    dist::NotCapturable);
    CHECK(support::what_throws<dist::NotCapturable>([&] {
            queue.wait();
          }).find("The host waits for queue 0 of GPU 0") == 0);
    CHECK_FALSE(queue.is_done());
  }
  {
    Graph::Capture spoilt{graph};
    CHECK_THROWS_AS((dist::cuda::DeviceBuffer{0, 8}), dist::NotCapturable);
    CHECK_THROWS_AS(spoilt.end(), dist::NotCapturable);
  }
  graph.launch();
  std::int64_t value = 0;
  queue.copy(dist::DeviceSpan<const std::int64_t, dist::cuda::DeviceMemory>{x, 1}, std::span{&value, 1});
  queue.wait();
  CHECK(value == 2);
  CHECK(before == 1);  // it was pending
  CHECK(during == -1);
}
