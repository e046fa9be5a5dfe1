// RPCs to another process by gRPC, compared with a plain TCP socket and with calls in this process: a 64-byte round
// trip, 64 concurrent ones, and 11 MB in each direction.
//
//   bench_rpc [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/device/reuse_memory.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/rpc/local_transport.hpp>

#include "support/arguments.hpp"
#include "support/free_endpoint.hpp"
#include "support/tcp_peer.hpp"
#include "support/turns.hpp"

namespace {

namespace rpc = dist::rpc;
using dist::net::Endpoint;

constexpr std::size_t large = 11'080'000;  // size of the gradients of the guide's CNN

template <class Transport>
std::vector<rpc::Method<typename Transport::Exchange>> methods() {
  using Exchange = typename Transport::Exchange;
  static std::vector<std::byte> memory(large);
  return {{"echo", [](Exchange& exchange) { exchange.reply(rpc::joined(exchange.pieces())); }},
          {"push",
           [](Exchange& exchange) {
             rpc::copy(exchange.pieces(), memory);
             exchange.reply({});
           }},
          {"pull", [](Exchange& exchange) {
             const rpc::Chunk piece = memory;
             exchange.reply({&piece, 1}, {});
           }}};
}

/// Runs the server process, which ends with its parent.
[[noreturn]] void serve(const Endpoint& by_grpc, const Endpoint& by_socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dist::reuse_memory();
  const dist::Grpc::Server server{by_grpc, {}, methods<dist::Grpc>()};
  bench::TcpPeer::serve(by_socket, large);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[ROUNDS]",
                                   "Times RPCs by gRPC, by a TCP socket, and within the process."};
  const int rounds = arguments.number(0, 20);
  const Endpoint by_grpc = bench::free_endpoint(), by_socket = bench::free_endpoint();
  const pid_t child = fork();  // before gRPC starts
  if (child == 0) serve(by_grpc, by_socket);
  dist::reuse_memory();
  {
    bench::TcpPeer tcp{by_socket, large};
    const Endpoint here{"here", "1"};
    const dist::Local::Server local_server{here, {}, methods<dist::Local>()};
    dist::Local::Channel local{here, {}};
    dist::Grpc::Channel grpc{by_grpc, {}};
    std::vector<std::byte> memory(large);
    const rpc::Chunk small = rpc::Chunk{memory}.first(64), all{memory};
    const auto pull = [&](auto& channel) { rpc::copy(channel.call("pull", {}, {}).pieces(), memory); };
    std::vector<bench::Row> rows{
        {"64 B there and back, TCP socket", 200, [&] { tcp.exchange(64, 64); }},
        {"64 B there and back, Grpc", 200,
         [&] {
           grpc.call("echo", {&small, 1}, {});
         }},
        {"64 B there and back, Local", 20'000,
         [&] {
           local.call("echo", {&small, 1}, {});
         }},
        {"64 B, 64 calls at a time, Grpc", 10,
         [&] {
           std::vector<dist::Grpc::Call> calls;
           for (int i = 0; i < 64; ++i) calls.push_back(grpc.start("echo", {&small, 1}, {}));
           for (const dist::Grpc::Call& call : calls) call.wait();
         },
         64},
        {"11 MB there, TCP socket", 5, [&] { tcp.exchange(large, 1); }},
        {"11 MB there, Grpc", 5,
         [&] {
           grpc.call("push", {&all, 1}, {});
         }},
        {"11 MB there, Local", 5,
         [&] {
           local.call("push", {&all, 1}, {});
         }},
        {"11 MB back, TCP socket", 5, [&] { tcp.exchange(1, large); }},
        {"11 MB back, Grpc", 5, [&] { pull(grpc); }},
        {"11 MB back, Local", 5, [&] { pull(local); }},
    };
    grpc.call("echo", {&small, 1}, {std::chrono::seconds{20}, true});
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a call");
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
