// Variables on a parameter server: in another process by gRPC, without and with shared memory that clients read or
// also write, and in this process. Pushes of 64 bytes and 11 MB, a pull of 11 MB, and pushes and pulls of 100 shards,
// one by one and in one message. For comparison, 11 MB in each direction over a TCP socket.
//
//   bench_server [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <dist/rpc/grpc/transport.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/shard_server.hpp>

#include "support/arguments.hpp"
#include "support/free_endpoint.hpp"
#include "support/server_variables.hpp"
#include "support/tcp_peer.hpp"
#include "support/turns.hpp"

namespace {

using dist::net::Endpoint;

constexpr std::size_t large = 11'082'536;  // bytes of the large variable

/// A parameter server in another process, which also runs `also`. The process ends with its parent or with this
/// object.
class ServerProcess {
 public:
  template <class Also>
  ServerProcess(const Endpoint& endpoint, dist::server::Reach reach, const Also& also) : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dist::Grpc::prepare_to_serve();
    dist::server::ShardServer store{reach};
    const dist::Grpc::Server listening{endpoint, {}, dist::server::store_methods<dist::Grpc::Exchange>(store)};
    also();
    for (;;) pause();
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

 private:
  const pid_t child_;
};

/// Prints the median of the ratios within the rounds.
void print_ratio(const std::vector<bench::Row>& rows, const char* name, const char* base_name, double goal) {
  const auto named = [&](const std::string& wanted) -> const bench::Row& {
    return *std::find_if(rows.begin(), rows.end(), [&](const bench::Row& row) { return row.name == wanted; });
  };
  const bench::Row &row = named(name), &base = named(base_name);
  std::vector<double> ratios;
  for (std::size_t round = 0; round < row.microseconds.size(); ++round)
    ratios.push_back(row.microseconds[round] / base.microseconds[round]);
  std::printf("%s: %.2f of the socket's time (goal %.1f)\n", row.name.c_str(), bench::distribution(ratios).median,
              goal);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 1, "[ROUNDS]",
      "Times pushes and pulls of variables on a parameter server, by gRPC and within the process."};
  const int rounds = arguments.number(0, 20);
  const Endpoint by_grpc = bench::free_endpoint(), in_memory = bench::free_endpoint(),
                 by_socket = bench::free_endpoint();
  // These must be constructed before gRPC starts.
  const ServerProcess first{by_grpc, dist::server::Reach::process, [&] { bench::TcpPeer::serve(by_socket, large); }};
  const ServerProcess second{in_memory, dist::server::Reach::machine, [] {}};
  dist::Grpc::prepare_to_serve();
  dist::server::ShardServer store;
  const Endpoint here{"here", "1"};
  const dist::Local::Server listening{here, {}, dist::server::store_methods<dist::Local::Exchange>(store)};
  bench::ServerVariables<dist::Local> local{here};
  bench::ServerVariables<dist::Grpc> grpc{by_grpc}, reading{in_memory},
      writing{in_memory, dist::server::SharedMemoryAccess::write, 1000};
  bench::TcpPeer tcp{by_socket, large};
  std::vector<bench::Row> of_local = local.rows("Local");
  std::vector<bench::Row> of_writing = writing.rows("Grpc writing memory");
  of_local.front().repetitions = of_writing.front().repetitions = 20'000;
  std::vector<bench::Row> rows =
      bench::side_by_side({grpc.rows("Grpc"), reading.rows("Grpc and memory"), of_writing, of_local});
  rows.push_back({"11 MB there, TCP socket", 5, [&] { tcp.exchange(large, 1); }});
  rows.push_back({"11 MB back, TCP socket", 5, [&] { tcp.exchange(1, large); }});
  bench::run_in_turns(rows, rounds);
  bench::print_table(rows, rounds, "a call");
  print_ratio(rows, "push of 11 MB, SGD, Grpc", "11 MB there, TCP socket", 1.4);
  print_ratio(rows, "pull of 11 MB, Grpc", "11 MB back, TCP socket", 1.4);
}
