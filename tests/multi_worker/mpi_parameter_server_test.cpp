// ranks: 4
// A chief, two workers and a parameter server started by mpirun.
#include <dist/cluster/mpi/roles_resolver.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

using dist::Grpc;

struct Descend {
  float rate;
  float operator()(float weight, float gradient) const { return weight - rate * gradient; }
};

/// A step towards (0, 1, 2, …) that reduces the distance by a tenth.
struct Step {
  template <class Weights>
  std::size_t operator()(dist::WorkerContext& worker, Weights& weights) const {
    const dist::Pulled<float> now = weights.pull(worker);
    dist::Tensor<float> gradient{now.values.shape()};
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = now.values[i] - static_cast<float>(i);
    weights.apply(worker, Descend{0.1F}, gradient.view(), {.versions = now.versions});
    std::this_thread::sleep_for(std::chrono::milliseconds{2});  // gives the other worker its share
    return worker.index();
  }
};

}  // namespace

TEST_CASE("a job of mpirun with a parameter server trains, and ends with its coordinator (spec J01, J12)") {
  const dist::MpiRolesResolver resolver{{.parameter_servers = 1}};
  if (dist::serve<Grpc>(resolver)) return;

  dist::ParameterServer<Grpc> strategy{resolver, {.partitioner = dist::FixedShards{2}}};
  CHECK(strategy.worker_options().shared_memory == dist::server::SharedMemoryAccess::write);
  CHECK(strategy.describe() == "ParameterServer<dist::Grpc>: 1 parameter server, 2 workers");
  dist::ClusterCoordinator coordinator{strategy};
  auto weights = strategy.variable<float>({50'000}, 0.0F, "weights");

  std::vector<dist::RemoteValue<std::size_t>> workers;
  for (int step = 0; step < 200; ++step) workers.push_back(coordinator.schedule(Step{}, weights));
  coordinator.join();
  std::set<std::size_t> busy;
  for (const auto& worker : workers) busy.insert(worker.fetch());
  CHECK(busy == std::set<std::size_t>{0, 1});
  const dist::Tensor<float> found = weights.read(strategy.scope());
  // With two workers, a gradient is at most one push late, which slows the descent slightly.
  for (const std::size_t i : {std::size_t{1}, std::size_t{777}, std::size_t{49'999}})
    CHECK(found[i] == doctest::Approx(static_cast<double>(i)).epsilon(1e-3));

  coordinator.schedule([](dist::WorkerContext&) { throw std::out_of_range("row 7"); });
  CHECK(support::what_throws<dist::RemoteError>([&] { coordinator.join(); }).find("row 7") != std::string::npos);
  CHECK(coordinator.schedule([](dist::WorkerContext&, int x) { return x + 1; }, 41).fetch() == 42);
}
