// The guide's CNN, trained asynchronously by two workers and a parameter server in this process (Local) and in
// separate ones (Grpc), compared with the synchronous step of two replicas. Parameters and gradients are each sent in
// one message, or in two during the computation.
//
//   bench_async_cnn [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/strategy/parameter_server.hpp>

#include "support/arguments.hpp"
#include "support/cnn.hpp"
#include "support/free_endpoint.hpp"
#include "support/turns.hpp"

namespace {

namespace nn = dist::nn;

constexpr std::size_t workers = 2, batch = 64;
constexpr int steps = 8;  // per worker and round

constexpr auto take_step = [](auto& replica, auto& net, auto& optimizer, auto& images) {
  const auto logits = net.forward(replica, images.x);
  const auto loss = nn::sparse_categorical_crossentropy(replica, logits, images.y, batch);
  net.backward(replica, loss, optimizer.when_ready(replica));
  optimizer.apply_gradients(replica);
};

/// A coordinator with two workers and a parameter server. `bucket_bytes` decides whether messages are split.
template <class Transport>
class Asynchronous {
 public:
  template <class Resolver>
  Asynchronous(const Resolver& resolver, std::size_t bucket_bytes)
      : strategy_(resolver, {.bucket_bytes = bucket_bytes}), coordinator_(strategy_) {}

  void train() {
    for (std::size_t step = 0; step < workers * steps; ++step)
      coordinator_.schedule(take_step, net_, optimizer_, images_);
    coordinator_.join();
  }

 private:
  using Strategy = dist::ParameterServer<Transport>;
  using Net = nn::Network<bench::Cnn, nn::OneDnn>;

  Strategy strategy_;
  Net net_{strategy_, 1};
  nn::Optimizer<Strategy, Net, nn::SGD> optimizer_{strategy_, net_, nn::SGD{1e-3f}};
  dist::ClusterCoordinator<Strategy> coordinator_;
  static constexpr auto make_images = [](const dist::InputContext&) { return bench::Images{batch}; };
  decltype(coordinator_.create_per_worker_resource(make_images)) images_ =
      coordinator_.create_per_worker_resource(make_images);
};

constexpr std::size_t one_message = 0, while_it_computes = std::size_t{1} << 20;  // bucket_bytes

/// A parameter server and workers in separate processes.
class Processes {
 public:
  /// Must be constructed before gRPC starts.
  Processes() {
    const auto append = [&](dist::TaskType type) { cluster_.append(type, {to_string(bench::free_endpoint())}); };
    append(dist::TaskType::parameter_server);
    for (std::size_t worker = 0; worker < workers; ++worker) append(dist::TaskType::worker);
    std::vector<dist::Task> tasks{{dist::TaskType::parameter_server, 0}};
    for (std::size_t worker = 0; worker < workers; ++worker) tasks.push_back({dist::TaskType::worker, worker});
    for (const dist::Task& task : tasks) {
      children_.push_back(fork());
      if (children_.back() != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      static_cast<void>(dist::serve<dist::Grpc>(dist::SimpleResolver{cluster_, task}));
      _exit(0);
    }
  }
  /// Must be destroyed after the coordinator.
  ~Processes() {
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  [[nodiscard]] dist::SimpleResolver resolver() const {
    return dist::SimpleResolver{cluster_, dist::Task{dist::TaskType::chief, 0}};
  }

 private:
  dist::ClusterSpec cluster_;
  std::vector<pid_t> children_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[ROUNDS]",
                                   "Trains the CNN with two workers and a parameter server."};
  const int rounds = arguments.number(0, 20);
  const Processes of_whole, of_cut;
  {
    const dist::LocalJob whole_job{1, workers}, cut_job{1, workers};
    Asynchronous<dist::Local> local_whole{whole_job.resolver(), one_message};
    Asynchronous<dist::Local> local_cut{cut_job.resolver(), while_it_computes};
    Asynchronous<dist::Grpc> grpc_whole{of_whole.resolver(), one_message};
    Asynchronous<dist::Grpc> grpc_cut{of_cut.resolver(), while_it_computes};
    dist::Mirrored<dist::ThreadAllReduce> mirrored{workers};
    bench::Training<dist::Mirrored<dist::ThreadAllReduce>> training{mirrored};
    const bench::Images images{workers * batch};
    std::vector<bench::Row> rows;
    rows.push_back({"Mirrored, 2 x 64", steps, [&] { training(images); }, workers});
    const auto add = [&](const char* name, auto& asynchronous) {
      rows.push_back({name, 1, [&] { asynchronous.train(); }, workers * steps});
    };
    add("Local, one message", local_whole);
    add("Local, during computation", local_cut);
    add("Grpc, one message", grpc_whole);
    add("Grpc, during computation", grpc_cut);
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a batch of 64");
    const double synchronous = rows.front().distribution().median;
    for (const bench::Row& row : rows)
      std::printf("%s: %.0f images per second, %.2f of Mirrored\n", row.name.c_str(),
                  1e6 * batch / row.distribution().median, synchronous / row.distribution().median);
  }
}
