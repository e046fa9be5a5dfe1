// Replicas on GPUs, some of which share a GPU, exchange host and GPU memory with their neighbors.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <cstddef>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <support/gpu_counts.hpp>

using conformance::MakeOfEnvironment;
using Direct = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice, dist::Cuda>;
using InGroups = dist::Mirrored<dist::HierarchicalCopyAllReduce, dist::Cuda>;
using Central = dist::CentralStorage<dist::Cpu, dist::Cuda>;
using One = dist::OneDevice<dist::Cuda>;

TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, MakeOfEnvironment<Direct>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, MakeOfEnvironment<Direct>, MakeOfEnvironment<ToOne>,
                               MakeOfEnvironment<InGroups>, MakeOfEnvironment<Central>, MakeOfEnvironment<One>);

TEST_CASE("each message in GPU memory is one copy and launches no kernel") {
  Direct strategy{conformance::replicas_of_environment()};
  const std::size_t size = strategy.num_replicas_in_sync();
  const auto field = strategy.buffer<double>({4});
  const auto before = support::gpu_counts();
  strategy.run([&](auto& replica) {
    const std::size_t id = replica.replica_id().index();
    const auto mine = field.component(replica);
    replica.neighbor_exchange({{(id + size - 1) % size, mine.subspan(1, 1)}, {(id + 1) % size, mine.subspan(2, 1)}},
                              {{(id + 1) % size, mine.subspan(3, 1)}, {(id + size - 1) % size, mine.first(1)}});
  });
  const auto after = support::gpu_counts();
  if (support::gpus_are_counted) {
    CHECK(after.copies - before.copies == 2 * size);
    CHECK(after.kernels == before.kernels);
  }
}
