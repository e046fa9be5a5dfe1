// Variables on a parameter server, in another process by gRPC and within the process, in turns: a push of 64 bytes that is
// waited for, pushes of 11 MB that are applied, a pull of 11 MB, and pushes and pulls of 100 shards of 64 bytes, one by one and
// in one message; and 11 MB there and back over a TCP socket to the same process.
//
//   bench_server [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include <dist/comm/grpc/transport.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/server/store.hpp>

#include "support/arguments.hpp"
#include "support/free_endpoint.hpp"
#include "support/server_variables.hpp"
#include "support/tcp_peer.hpp"
#include "support/turns.hpp"

namespace {

using dist::net::Endpoint;

constexpr std::size_t large = 11'082'536;  // bytes of the large variable

/// The other process. It ends with its parent.
[[noreturn]] void serve(const Endpoint& by_grpc, const Endpoint& by_socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dist::Grpc::prepare_to_serve();
  dist::server::Store store;
  const dist::Grpc::Server listening{by_grpc, {}, dist::server::store_methods<dist::Grpc::Exchange>(store)};
  bench::TcpPeer::serve(by_socket, large);
  for (;;) pause();
}

/// The median of the ratios within the rounds.
void print_ratio(const bench::Row& row, const bench::Row& base, double goal) {
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
      "Pushes and pulls of variables on a parameter server, by gRPC and within the process."};
  const int rounds = arguments.number(0, 20);
  const Endpoint by_grpc = bench::free_endpoint(), by_socket = bench::free_endpoint();
  const pid_t child = fork();  // before gRPC starts
  if (child == 0) serve(by_grpc, by_socket);
  dist::Grpc::prepare_to_serve();
  {
    dist::server::Store store;
    const Endpoint here{"here", "1"};
    const dist::Local::Server listening{here, {}, dist::server::store_methods<dist::Local::Exchange>(store)};
    bench::ServerVariables<dist::Local> local{here};
    bench::ServerVariables<dist::Grpc> grpc{by_grpc};
    bench::TcpPeer tcp{by_socket, large};
    std::vector<bench::Row> of_local = local.rows("Local");
    of_local.front().repetitions = 20'000;
    std::vector<bench::Row> rows = bench::side_by_side({grpc.rows("Grpc"), of_local});
    const std::size_t sockets = rows.size();
    rows.push_back({"11 MB there, TCP socket", 5, [&] { tcp.exchange(large, 1); }});
    rows.push_back({"11 MB back, TCP socket", 5, [&] { tcp.exchange(1, large); }});
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a call");
    print_ratio(rows[2], rows[sockets], 1.4);
    print_ratio(rows[6], rows[sockets + 1], 1.4);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
