// Asynchronous optimization without a network: parameter servers hold the solution of a least-squares problem, and
// workers improve it from random rows without waiting for each other. Servers and workers are threads of this
// process, or with "ps" tasks in TF_CONFIG, or with mpirun -n 6, processes that communicate by gRPC.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include <dist/cluster.hpp>
#include <dist/cluster/mpi/roles_resolver.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>

#include "check.hpp"
#include "quick.hpp"

namespace {

constexpr std::size_t features = 200;
constexpr std::size_t batch = 32;

/// The exact solution, which the workers only know through the rows.
float truth(std::size_t feature) { return std::sin(static_cast<float>(feature)); }

/// An endless stream of random rows for one worker.
struct Rows {
  dist::RandomStream random;
  std::uint64_t next = 0;

  /// Fills `row`, and returns its target value.
  float draw(std::span<float> row) {
    float sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = 2 * random.uniform(next++) - 1;
      sum += row[i] * truth(i);
    }
    return sum + 0.01F * (2 * random.uniform(next++) - 1);
  }
};

/// The update rule that the servers apply to a gradient.
struct Descend {
  float rate;
  float operator()(float weight, float gradient) const { return weight - rate * gradient; }
};

/// One step on any idle worker: pulls the weights, and pushes the gradient of a few rows. Other workers may change
/// the weights in between. Returns the mean squared error.
struct Step {
  // [step]
  template <class Weights>
  float operator()(dist::WorkerContext& worker, Weights& weights, Rows& rows, float rate) const {
    const dist::Pulled<float> now = weights.pull(worker);
    dist::Tensor<float> gradient{dist::Shape{features}};
    dist::Tensor<float> row{dist::Shape{features}};
    float squares = 0;
    for (std::size_t i = 0; i < batch; ++i) {
      float error = -rows.draw(row.elements());
      for (std::size_t j = 0; j < features; ++j) error += row[j] * now.values[j];
      for (std::size_t j = 0; j < features; ++j) gradient[j] += error * row[j] / batch;
      squares += error * error / batch;
    }
    weights.apply(worker, Descend{rate}, gradient.view(), {.versions = now.versions});
    return squares;
  }
  // [/step]
};

template <class T, class Resolver>
void optimise(const Resolver& resolver) {
  // [variables]
  dist::ParameterServer<T> strategy{resolver, {.partitioner = dist::FixedShards{2}}};
  dist::ClusterCoordinator coordinator{strategy};
  std::printf("%s\n", strategy.describe().c_str());

  auto weights = strategy.template variable<float>({features}, 0.0F, "weights");
  // [/variables]
  const auto rows = coordinator.create_per_worker_resource([](const dist::InputContext& worker) {
    return Rows{dist::RandomStream{/*seed=*/2026 + worker.input_pipeline_id()}};
  });
  const int rounds = quick() ? 8 : 20;
  for (int round = 1; round <= rounds; ++round) {
    dist::RemoteValue<float> last;
    // [schedule]
    for (int step = 0; step < 100; ++step) last = coordinator.schedule(Step{}, weights, rows, 0.5F);
    coordinator.join();
    // [/schedule]
    const dist::server::Staleness staleness = weights.staleness(strategy.scope());
    std::printf("round %2d: mean square %.6f, gradients %.2f pushes late, at most %llu\n", round,
                static_cast<double>(last.fetch()), staleness.mean(), static_cast<unsigned long long>(staleness.max));
  }
  const dist::Tensor<float> solution = weights.read(strategy.scope());
  float worst = 0;
  for (std::size_t i = 0; i < features; ++i) worst = std::max(worst, std::abs(solution[i] - truth(i)));
  std::printf("the solution is found to %.4f\n", static_cast<double>(worst));
  check(worst < 0.02F, "asynchronous steps find the solution");
}

}  // namespace

int main() try {
  if (std::getenv("TF_CONFIG") != nullptr) {
    // [serve]
    const dist::TfConfigResolver resolver;
    if (dist::serve<dist::Grpc>(resolver)) return 0;  // in servers and workers, after the coordinator has finished
    // [/serve]
    optimise<dist::Grpc>(resolver);
  } else if (dist::LauncherResolver{}.task()) {
    // [mpi]
    const dist::MpiRolesResolver resolver{{.parameter_servers = 2}};
    if (dist::serve<dist::Grpc>(resolver)) return 0;
    // [/mpi]
    optimise<dist::Grpc>(resolver);
  } else {
    const dist::LocalJob job{/*parameter_servers=*/2, /*workers=*/3};
    optimise<dist::Local>(job.resolver());
  }
  // [exit]
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
// [/exit]
