// Workers whose GPUs access each other's memory through windows of NCCL: suites of all strategies and optimizers, and
// specific tests.
// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#define DIST_TEST_FEW_ELEMENTS
#include <conformance/cross_device_ops.hpp>
#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/strategy.hpp>
#include <dist/comm/nccl/nccl_symmetric_all_reduce.cuh>
#include <dist/core/shape.hpp>
#include <support/descend.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>

#include "of_workers.hpp"

using conformance::Make;
using of_workers::failure;
using of_workers::has;
using of_workers::is_last;
using of_workers::meet;
using of_workers::ranks;
using namespace std::chrono_literals;
using Workers = dist::MultiWorker<dist::NcclSymmetricAllReduce>;
static_assert(std::same_as<Workers::Device, dist::Cuda>);

namespace {

/// The GPUs of the machine, which its workers divide.
const bool machine_is_named = setenv("DIST_FAKE_CUDA", "8 eager", 0) == 0;

dist::MultiWorkerOptions with(std::size_t replicas, std::chrono::milliseconds timeout = 20s) {
  return {.replicas = replicas, .communication = {.timeout = timeout}};
}

/// Returns numbers whose sums depend on the order of addition.
DIST_HD float number(std::size_t rank, std::size_t i) {
  return 1.0F / static_cast<float>(3 * i + 7 * rank + 1) + (i % 3 == rank % 3 ? 1e6F : 0.0F);
}
struct Number {
  float* to;
  std::size_t rank;
  DIST_HD void operator()(std::size_t i) const { to[i] = number(rank, i); }
};

constexpr std::size_t elements = 1003;

/// Creates gradients and zeros, updates these, and returns the number of local weights whose bits differ from a sum in
/// rank order.
std::size_t mistakes_of_update(Workers& strategy, const dist::ReplicaBuffer<float, dist::Cuda>& gradients,
                               const dist::ReplicaBuffer<float, dist::Cuda>& weights) {
  const auto wrong = strategy.run([&](auto& replica) {
    const auto gradient = gradients.component(replica);
    const auto weight = weights.component(replica);
    replica.queue().fill(weight, 0.0F);
    replica.for_each(elements, Number{gradient.data(), replica.replica_id().index()});
    replica.reduce_and_apply(dist::sum, gradient, weight, support::Descend{});
    std::vector<float> after(elements);
    replica.queue().copy(weight, std::span<float>{after});
    replica.queue().wait();
    std::size_t mistakes = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      float sum = number(0, i);
      for (std::size_t rank = 1; rank < replica.num_replicas_in_sync(); ++rank) sum += number(rank, i);
      mistakes += after[i] != 0.0F - sum;
    }
    return mistakes;
  });
  std::size_t mistakes = 0;
  for (const std::size_t each : wrong) mistakes += each;
  return mistakes;
}

int reductions() { return fake_nccl::calls("ncclReduceScatter") + fake_nccl::calls("ncclReduce"); }

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, Workers);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<Workers, 2>);

TEST_CASE(
    "GPUs of all workers are read and written through windows in rank order, also after a variable is destroyed") {
  for (const int polls : {0, 2}) {
    fake_nccl::restart({.polls = polls});
    {
      Workers strategy{with(2)};
      const auto weights = strategy.buffer<float>(dist::Shape{elements});
      for (const int round : {1, 2, 3}) {
        CAPTURE(round);
        const auto gradients = strategy.buffer<float>(dist::Shape{elements});
        CHECK(mistakes_of_update(strategy, gradients, weights) == 0);
        CHECK(mistakes_of_update(strategy, gradients, weights) == 0);
        CHECK(fake_nccl::live_windows() == 4);
      }
      CHECK(fake_nccl::live_windows() == 2);
      CHECK(reductions() == 0);
      CHECK(fake_nccl::calls("ncclCommWindowRegister") == 2 * 4);
      CHECK(fake_nccl::calls("ncclDevCommCreate") == 2);
    }
    CHECK(fake_nccl::live_windows() == 0);
    CHECK(fake_nccl::live_communicators() == 0);
    CHECK(fake_cuda::live() == fake_cuda::Live{});
    meet();
  }
  fake_nccl::restart();
}

TEST_CASE("workers on several machines use no windows, and one without windows disables them for all") {
  if (ranks() == 1) return;
  for (const bool are_on_one_machine : {false, true}) {
    CAPTURE(are_on_one_machine);
    if (!are_on_one_machine && is_last()) setenv("NCCL_HOSTID", "another machine", 1);
    fake_nccl::restart({.lsa_size = are_on_one_machine && is_last() ? 1 : 0});
    {
      Workers strategy{with(1)};
      const auto gradients = strategy.buffer<float>(dist::Shape{elements});
      const auto weights = strategy.buffer<float>(dist::Shape{elements});
      static_cast<void>(mistakes_of_update(strategy, gradients, weights));
      static_cast<void>(mistakes_of_update(strategy, gradients, weights));
      CHECK(reductions() > 0);
      CHECK(fake_nccl::calls("ncclDevCommCreate") == (are_on_one_machine ? 1 : 0));
      CHECK(fake_nccl::calls("ncclDevCommDestroy") == fake_nccl::calls("ncclDevCommCreate"));
      CHECK(fake_nccl::calls("ncclCommWindowRegister") == 0);
    }
    unsetenv("NCCL_HOSTID");
    meet();
  }
  fake_nccl::restart();
}

TEST_CASE("workers with an operand outside windows all use NCCL's own collective, and return to windows later") {
  fake_nccl::restart();
  {
    Workers strategy{with(1)};
    const auto gradients = strategy.buffer<float>(dist::Shape{elements});
    const auto weights = strategy.buffer<float>(dist::Shape{elements});
    const auto others = strategy.buffer<float>(dist::Shape{elements});
    CHECK(mistakes_of_update(strategy, gradients, weights) == 0);
    // Only the last worker's operand is in no window yet.
    static_cast<void>(mistakes_of_update(strategy, is_last() ? others : gradients, weights));
    CHECK((reductions() > 0) == (ranks() > 1));
    const int before = reductions();
    CHECK(mistakes_of_update(strategy, gradients, weights) == 0);
    CHECK(reductions() == before);
  }
  meet();
}

TEST_CASE("a worker that cannot create a window ends the work of all in time") {
  if (ranks() == 1) return;
  for (const std::string_view function : {"ncclDevCommCreate", "ncclCommWindowRegister"}) {
    CAPTURE(function);
    fake_nccl::restart({.hears_of_aborts = true});
    {
      Workers strategy{with(1, 1500ms)};
      const auto gradients = strategy.buffer<float>(dist::Shape{elements});
      const auto weights = strategy.buffer<float>(dist::Shape{elements});
      meet();
      if (is_last()) fake_nccl::fail_call(function, ncclSystemError);
      const std::string said = failure([&] { static_cast<void>(mistakes_of_update(strategy, gradients, weights)); });
      if (is_last()) CHECK(has(said, function));
      CHECK(said != "nothing was thrown");
      CHECK(fake_nccl::live_communicators() == 0);
      meet();
    }
    CHECK(fake_cuda::live() == fake_cuda::Live{});
    meet();
  }
  fake_nccl::restart();
}
