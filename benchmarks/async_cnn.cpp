// The guide's CNN trained by two workers that do not wait for each other and one parameter server, of this process (Local) and
// of processes of their own (Grpc), beside the synchronous step of two replicas. Parameters and gradients travel in one message
// to the server each, or in two, while the worker computes.
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

#include <dist/async/worker_network.hpp>
#include <dist/cluster/simple_resolver.hpp>
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
constexpr int steps = 8;  // of each worker, in a round

constexpr auto take_step = [](dist::WorkerContext& worker, auto& net, auto& images) {
  net.run(worker, [&](auto& replica) {
    const auto logits = net.forward(replica, images.x);
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, images.y, batch);
    net.backward(replica, loss, net.push_when_ready(replica));
    net.apply_gradients(replica);
  });
};

/// A coordinator of two workers and a parameter server, with a network whose messages are cut and one whose are not.
template <class Transport>
class Asynchronous {
 public:
  template <class Resolver>
  explicit Asynchronous(const Resolver& resolver) : strategy_(resolver), coordinator_(strategy_) {}

  void add_rows(std::vector<bench::Row>& rows, const std::string& transport) {
    rows.push_back({transport + ", one message", 1, [this] { train(whole_replicas_); }, workers * steps});
    rows.push_back({transport + ", while it computes", 1, [this] { train(cut_replicas_); }, workers * steps});
  }

 private:
  using Net = nn::ServerNetwork<bench::Cnn, nn::OneDnn, Transport>;
  using Optimizer = nn::ServerOptimizer<Net, nn::SGD>;

  void train(const auto& replicas) {
    for (std::size_t step = 0; step < workers * steps; ++step) coordinator_.schedule(take_step, replicas, images_);
    coordinator_.join();
  }

  dist::ParameterServer<Transport> strategy_;
  dist::ClusterCoordinator<dist::ParameterServer<Transport>> coordinator_;
  Net whole_{strategy_, 1, {.bytes_per_message = 0}}, cut_{strategy_, 1};
  Optimizer of_whole_{strategy_, whole_, nn::SGD{1e-3f}}, of_cut_{strategy_, cut_, nn::SGD{1e-3f}};
  decltype(nn::create_per_worker_network(coordinator_, of_cut_)) whole_replicas_ =
      nn::create_per_worker_network(coordinator_, of_whole_);
  decltype(whole_replicas_) cut_replicas_ = nn::create_per_worker_network(coordinator_, of_cut_);
  static constexpr auto make_images = [](const dist::InputContext&) { return bench::Images{batch}; };
  decltype(coordinator_.create_per_worker_resource(make_images)) images_ =
      coordinator_.create_per_worker_resource(make_images);
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[ROUNDS]", "The CNN by two workers and a parameter server."};
  const int rounds = arguments.number(0, 20);
  dist::ClusterSpec cluster;
  const auto append = [&](dist::TaskType type) { cluster.append(type, {to_string(bench::free_endpoint())}); };
  append(dist::TaskType::parameter_server);
  for (std::size_t worker = 0; worker < workers; ++worker) append(dist::TaskType::worker);
  std::vector<dist::Task> tasks{{dist::TaskType::parameter_server, 0}};
  for (std::size_t worker = 0; worker < workers; ++worker) tasks.push_back({dist::TaskType::worker, worker});
  std::vector<pid_t> children;
  for (const dist::Task& task : tasks) {
    children.push_back(fork());  // before gRPC starts
    if (children.back() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static_cast<void>(dist::serve<dist::Grpc>(dist::SimpleResolver{cluster, task}));
    _exit(0);
  }
  {
    const dist::LocalJob job{1, workers};
    Asynchronous<dist::Local> local{job.resolver()};
    Asynchronous<dist::Grpc> grpc{dist::SimpleResolver{cluster, dist::Task{dist::TaskType::chief, 0}}};
    dist::Mirrored<dist::SharedMemoryAllReduce> mirrored{workers};
    bench::Training<dist::Mirrored<dist::SharedMemoryAllReduce>> training{mirrored};
    const bench::Images images{workers * batch};
    std::vector<bench::Row> rows;
    rows.push_back({"Mirrored, 2 x 64", steps, [&] { training(images); }, workers});
    local.add_rows(rows, "Local");
    grpc.add_rows(rows, "Grpc");
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a batch of 64");
    const double synchronous = rows.front().distribution().median;
    for (const bench::Row& row : rows)
      std::printf("%s: %.0f images a second, %.2f of Mirrored\n", row.name.c_str(),
                  1e6 * batch / row.distribution().median, synchronous / row.distribution().median);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
}
