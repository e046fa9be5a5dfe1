// Workers whose GPUs use NCCL: suites of all strategies and optimizers, and specific tests.
// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#define DIST_TEST_FEW_ELEMENTS
#include <conformance/cross_device_ops.hpp>
#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/strategy.hpp>
#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/core/shape.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>
#include <support/throw_cause_of.hpp>

#include "of_workers.hpp"

using conformance::Make;
using of_workers::has;
using of_workers::is_last;
using of_workers::meet;
using of_workers::my_rank;
using of_workers::ranks;
using namespace std::chrono_literals;
using Workers = dist::MultiWorker<dist::NcclAllReduce>;
static_assert(std::same_as<Workers::Device, dist::Cuda>);

namespace {

constexpr std::size_t gpus = 8;

/// The GPUs of the machine, which its workers divide.
const bool machine_is_named = setenv("DIST_FAKE_CUDA", "8 eager", 0) == 0;

dist::MultiWorkerOptions with(std::size_t replicas, std::chrono::milliseconds timeout = 20s) {
  return {.replicas = replicas, .communication = {.timeout = timeout}};
}

/// Like of_workers::failure, plus type and code of an NcclError.
template <class Fn>
std::string failure(Fn&& fn) {
  return of_workers::failure([&] {
    try {
      support::throw_cause_of(std::forward<Fn>(fn));
    } catch (const dist::NcclError& error) {
      throw std::runtime_error(dist::concat("NcclError ", static_cast<int>(error.code()), ": ", error.what()));
    }
  });
}

/// Sums 1 over all replicas on their GPUs.
void add_ones(Workers& strategy) {
  const auto ones = strategy.buffer<float>(dist::Shape{100});
  const auto sums = strategy.run([&](auto& replica) {
    const auto mine = ones.component(replica);
    replica.queue().fill(mine, 1.0F);
    replica.all_reduce(dist::sum, mine);
    std::vector<float> read(mine.size());
    replica.queue().copy(mine, std::span<float>{read});
    replica.queue().wait();
    return read;
  });
  for (const std::vector<float>& each : sums)
    for (const float sum : each)
      if (sum != static_cast<float>(strategy.num_replicas_in_sync())) throw std::logic_error("a wrong sum");
}

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, Workers);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<Workers, 2>);

TEST_CASE("each worker has its own GPUs, and a context on no others") {
  const std::size_t share = gpus / ranks();
  const std::size_t first = my_rank() * share;
  Workers strategy{2};
  CHECK(strategy.worker_devices() ==
        std::vector<std::string>{dist::concat("/gpu:", first), dist::concat("/gpu:", first + 1)});
  for (const int device : fake_cuda::contexts())
    CHECK((first <= static_cast<std::size_t>(device) && static_cast<std::size_t>(device) < first + share));
  CHECK(strategy.describe().find(
            dist::concat("MultiWorker<NcclAllReduce, Cuda>: ", 2 * ranks(), " replicas, 2 of them here")) == 0);
  CHECK(fake_nccl::live_communicators() == 2);
}

TEST_CASE("workers with explicit GPUs use them, also in parts of a strategy") {
  dist::MultiWorkerOptions options = with(1);
  options.replicas.reset();
  const std::vector<std::string> devices{dist::concat("/gpu:", 2 * my_rank() + 1),
                                         dist::concat("/gpu:", 2 * my_rank())};
  options.devices = devices;
  Workers strategy{options};
  CHECK(strategy.worker_devices() == devices);
  add_ones(strategy);
  Workers part = strategy.split(my_rank() % 2);
  CHECK(part.worker_devices() == devices);
  CHECK(part.num_replicas_in_sync() == 2 * ((ranks() + 1 - my_rank() % 2) / 2));
  add_ones(part);
  add_ones(strategy);
}

TEST_CASE("a replica has the same shard of host memory as of GPU memory, and the same sums") {
  for (const bool in_memory : {true, false}) {
    fake_nccl::restart({.polls = 1});
    dist::MultiWorkerOptions options = with(2);
    options.hierarchical = in_memory;
    Workers strategy{options};
    constexpr std::size_t elements = 1003;
    const auto values = strategy.buffer<float>(dist::Shape{elements});
    const auto kept = strategy.buffer<float>(dist::Shape{elements});
    const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
    const auto wrong = strategy.run([&](auto& replica) {
      std::vector<float> mine(elements), there(elements), gradients(elements, 3.0F);
      for (std::size_t i = 0; i < elements; ++i) mine[i] = static_cast<float>(i + replica.replica_id().index());
      replica.queue().copy(std::span<const float>{mine}, values.component(replica));
      const dist::IndexRange shard =
          replica.reduce_scatter(dist::sum, values.component(replica), kept.component(replica));
      replica.queue().copy(kept.component(replica), std::span<float>{there});
      replica.queue().wait();
      std::string mistakes;
      std::size_t seen = 0;
      replica.reduce_scatter(dist::sum, std::span<float>{mine}, [&](std::size_t first, std::span<const float> reduced) {
        if (first != shard.begin + seen) mistakes += "another shard; ";
        for (std::size_t i = 0; i < reduced.size(); ++i)
          if (reduced[i] != there[first + i] ||
              reduced[i] != replicas * static_cast<float>(first + i) + replicas * (replicas - 1) / 2)
            mistakes += "a wrong sum; ";
        seen += reduced.size();
      });
      if (seen != shard.size()) mistakes += "a smaller or a larger shard; ";
      // Each replica updates its shard of the mirrors, and all get the result.
      std::vector<float> mirror(elements, 1.0F);
      replica.reduce_and_apply(
          dist::mean, std::span<float>{gradients}, std::span<float>{mirror},
          [](std::size_t i, float weight, float mean) { return weight + mean * static_cast<float>(i); });
      for (std::size_t i = 0; i < elements; ++i)
        if (mirror[i] != 1.0F + 3.0F * static_cast<float>(i)) mistakes += "a wrong weight; ";
      return mistakes;
    });
    for (const std::string& each : wrong) CHECK(each == "");
  }
  fake_nccl::restart();
}

TEST_CASE("workers whose replicas share a GPU are rejected on all, with both replicas and a suggestion (spec H05)") {
  if (ranks() == 1) return;
  dist::MultiWorkerOptions options = with(1);
  options.devices = {"/gpu:3"};
  const int begun = fake_nccl::calls("ncclCommInitRankConfig");
  const std::string said = failure([&] { Workers{options}; });
  CHECK(has(said, "InvalidArgument: "));
  CHECK(has(said, "replica 0 (worker 0) and replica 1 (worker 1) are on GPU ffff:03:00.0 of host "));
  CHECK(has(said, "MultiWorkerOptions::devices"));
  CHECK(has(said, "Mirrored<DirectAllReduce, Cuda>"));
  CHECK(fake_nccl::calls("ncclCommInitRankConfig") == begun);
  meet();
}

TEST_CASE("workers with different versions of NCCL are rejected on all, with both versions and a suggestion") {
  if (ranks() == 1) return;
  if (is_last()) fake_nccl::restart({.version = 21805});
  const std::string said = failure([] { Workers{with(1)}; });
  CHECK(has(said, dist::concat("NcclError ", static_cast<int>(ncclInvalidUsage))));
  CHECK(has(said, dist::concat("libnccl of worker ", ranks() - 1, " is 2.18.5")));
  CHECK(has(said, "MultiWorker<RingAllReduce>"));
  fake_nccl::restart();
  meet();
}

TEST_CASE("a worker that cannot start ends the start of all") {
  if (ranks() == 1) return;
  if (my_rank() == 0) fake_nccl::fail_call("ncclGetUniqueId", ncclSystemError);
  const std::string said = failure([] { Workers{with(1)}; });
  CHECK(has(said, my_rank() == 0 ? "NcclError" : "PeerError"));
  CHECK(fake_nccl::live_communicators() == 0);
  meet();
}

TEST_CASE("a worker whose NCCL fails ends the work of all in time, without leaking communicators") {
  if (ranks() == 1) return;
  for (const bool hears : {true, false}) {
    CAPTURE(hears);
    fake_nccl::restart({.hears_of_aborts = hears});
    {
      Workers strategy{with(1, 1500ms)};
      add_ones(strategy);
      meet();
      if (is_last()) fake_nccl::fail_call("ncclAllReduce", ncclSystemError);
      const std::string said = failure([&] { add_ones(strategy); });
      if (is_last())
        CHECK(has(said, dist::concat("NcclError ", static_cast<int>(ncclSystemError))));
      else if (hears)
        CHECK(has(said, dist::concat("NcclError ", static_cast<int>(ncclRemoteError))));
      else
        CHECK(has(said, "DeadlineExceeded: Work was not done in time: queue 0 of GPU"));
      CHECK(fake_nccl::live_communicators() == 0);
      CHECK(failure([&] { add_ones(strategy); }) != "nothing was thrown");
      meet();
    }
    meet();
  }
  fake_nccl::restart();
}

TEST_CASE("an exception of one worker is reported to all, and they continue together on their GPUs") {
  Workers strategy{with(2)};
  const std::string said = failure([&] {
    strategy.run([&](auto& replica) {
      if (is_last() && replica.local_index() == 1) throw std::runtime_error("the loss is not a number");
      const auto one = dist::Cuda::Span<float>{};
      replica.all_reduce(dist::sum, one);
    });
  });
  CHECK(has(said, "the loss is not a number"));
  if (!is_last()) CHECK(has(said, "PeerError: "));
  add_ones(strategy);
}
