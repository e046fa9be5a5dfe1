// Overhead of scheduled functions: schedule to fetch of an empty function on one worker, and a thousand empty
// functions on two, in this process (Local) and in separate ones (Grpc). For comparison, a plain RPC to the same
// worker.
//
//   bench_coordinator [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/worker_service.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/rpc/local_transport.hpp>

#include "support/arguments.hpp"
#include "support/free_endpoint.hpp"
#include "support/turns.hpp"

namespace {

using dist::net::Endpoint;

constexpr int many = 1000;
constexpr auto nothing = [](dist::WorkerContext&) {};

/// Runs a worker process, which ends with its parent.
[[noreturn]] void work(const Endpoint& own) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dist::WorkerService<dist::Grpc> service;
  const dist::Grpc::Server server{own, {}, service.methods()};
  for (;;) pause();
}

/// Coordinators of one and of two workers. The constructor waits for the connections.
template <class Transport>
class Cluster {
 public:
  Cluster(const char* transport, const std::vector<Endpoint>& workers)
      : transport_(transport),
        channel_(workers[0], {}),
        one_(dist::WorkerList<Transport>{{workers[0]}}),
        two_(dist::WorkerList<Transport>{workers}) {
    while (one_.metrics().connected < 1 || two_.metrics().connected < 2) usleep(1000);
  }

  void add_rows(std::vector<bench::Row>& rows) {
    rows.push_back({"plain RPC, " + transport_, 300, [this] {
                      const std::vector<std::byte> no_session = dist::to_bytes(std::uint64_t{0});
                      const dist::rpc::Chunk piece = no_session;
                      channel_.call(dist::detail::run_method, {&piece, 1}, {});
                    }});
    rows.push_back({"schedule to fetch, " + transport_, 300, [this] { one_.schedule(nothing).fetch(); }});
    rows.push_back({"1,000 functions on 2 workers, " + transport_, 1,
                    [this] {
                      for (int i = 0; i < many; ++i) two_.schedule(nothing);
                      two_.join();
                    },
                    many});
  }

 private:
  const std::string transport_;
  typename Transport::Channel channel_;
  dist::ClusterCoordinator<dist::WorkerList<Transport>> one_, two_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[ROUNDS]", "Times functions scheduled by a ClusterCoordinator."};
  const int rounds = arguments.number(0, 20);
  const std::vector<Endpoint> elsewhere{bench::free_endpoint(), bench::free_endpoint()},
      here{{"here", "1"}, {"here", "2"}};
  std::vector<pid_t> children;
  for (const Endpoint& own : elsewhere) {
    children.push_back(fork());  // before gRPC starts
    if (children.back() == 0) work(own);
  }
  {
    dist::WorkerService<dist::Local> services[2];
    const dist::Local::Server servers[]{{here[0], {}, services[0].methods()}, {here[1], {}, services[1].methods()}};
    Cluster<dist::Local> local{"Local", here};
    Cluster<dist::Grpc> grpc{"Grpc", elsewhere};
    std::vector<bench::Row> rows;
    local.add_rows(rows);
    grpc.add_rows(rows);
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a function");
    for (const bench::Row& row : rows)
      if (row.times > 1)
        std::printf("%s: %.0f functions per second\n", row.name.c_str(), 1e6 / row.distribution().median);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}
