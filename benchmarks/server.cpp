// Variables on a parameter server, in another process by gRPC and within the process, in turns: a push of 64 bytes that is
// waited for, pushes of 11 MB that are applied, a pull of 11 MB, and pushes and pulls of 100 shards of 64 bytes, one by one and
// in one message.
//
//   bench_server [ROUNDS]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/grpc/transport.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/server/client.hpp>
#include <dist/server/store.hpp>

#include "support/arguments.hpp"
#include "support/free_endpoint.hpp"
#include "support/turns.hpp"

namespace {

namespace server = dist::server;
using dist::net::Endpoint;

constexpr std::size_t small = 16, large = 2'770'634;  // 64 bytes, and the parameters of the guide's CNN
constexpr server::ShardId small_shard = 1, large_shard = 2, first_of_many = 3;
constexpr std::size_t many = 100;

/// The other process. It ends with its parent.
[[noreturn]] void serve(const Endpoint& own) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dist::Grpc::prepare_to_serve();
  server::Store store;
  const dist::Grpc::Server listening{own, {}, server::store_methods<dist::Grpc::Exchange>(store)};
  for (;;) pause();
}

/// A client with a small variable, a large one with Adam's slots, and many small ones.
template <class Transport>
class Variables {
 public:
  explicit Variables(const Endpoint& endpoint)
      : client_(0, endpoint, {.wait_for_server = std::chrono::seconds{20}}), values_(large, 1e-3f) {
    client_.greet();
    client_.create({small_shard, "small", small, 1, 0}, 0.0f);
    client_.create({large_shard, "large", large, 1, 0}, 0.0f);
    client_.ensure_slots(large_shard, 0, {0, 0});
    for (std::size_t i = 0; i < many; ++i) client_.create({first_of_many + i, "one of many", small, 1, 0}, 0.0f);
  }

  void push_small() { client_.push(small_shard, sgd, std::span<const float>{values_}.first(small)); }
  void push_sgd() { client_.push(large_shard, sgd, std::span<const float>{values_}); }
  void push_adam() { client_.push(large_shard, adam, std::span<const float>{values_}); }
  void pull() { client_.pull(large_shard, std::span{values_}); }

  void push_many_alone() {
    for (std::size_t i = 0; i < many; ++i) client_.push(first_of_many + i, sgd, part(i));
  }
  void push_many() {
    server::PushRequest request;
    for (std::size_t i = 0; i < many; ++i) request.dense(first_of_many + i, sgd, part(i));
    client_.push(request);
  }
  void pull_many_alone() {
    for (std::size_t i = 0; i < many; ++i) client_.pull(first_of_many + i, part(i));
  }
  void pull_many(std::uint64_t known = server::unknown_version) {
    server::PullRequest request;
    for (std::size_t i = 0; i < many; ++i) request.dense(first_of_many + i, part(i), {.known = known});
    version_ = client_.pull(request).front();
  }
  void pull_many_unchanged() { pull_many(version_); }

 private:
  static constexpr dist::nn::SGD::Plain<float> sgd{1e-4f};
  static constexpr dist::nn::Adam::Update<float, false> adam{1e-4f, 0.1f, 0.001f, 1e-7f};

  [[nodiscard]] std::span<float> part(std::size_t i) { return std::span{values_}.subspan(i * small, small); }

  server::Client<Transport> client_;
  std::vector<float> values_;
  std::uint64_t version_ = server::unknown_version;  ///< of the many, which are pushed to together
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 1, "[ROUNDS]",
      "Pushes and pulls of variables on a parameter server, by gRPC and within the process."};
  const int rounds = arguments.number(0, 20);
  const Endpoint endpoint = bench::free_endpoint();
  const pid_t child = fork();  // before gRPC starts
  if (child == 0) serve(endpoint);
  dist::Grpc::prepare_to_serve();
  {
    server::Store store;
    const Endpoint here{"here", "1"};
    const dist::Local::Server listening{here, {}, server::store_methods<dist::Local::Exchange>(store)};
    Variables<dist::Local> local{here};
    Variables<dist::Grpc> grpc{endpoint};
    std::vector<bench::Row> rows{{"push of 64 B, Grpc", 200, [&] { grpc.push_small(); }},
                                 {"push of 64 B, Local", 20'000, [&] { local.push_small(); }},
                                 {"push of 11 MB, SGD, Grpc", 5, [&] { grpc.push_sgd(); }},
                                 {"push of 11 MB, SGD, Local", 5, [&] { local.push_sgd(); }},
                                 {"push of 11 MB, Adam, Grpc", 5, [&] { grpc.push_adam(); }},
                                 {"push of 11 MB, Adam, Local", 5, [&] { local.push_adam(); }},
                                 {"pull of 11 MB, Grpc", 5, [&] { grpc.pull(); }},
                                 {"pull of 11 MB, Local", 5, [&] { local.pull(); }},
                                 {"push to 100 shards one by one, Grpc", 5, [&] { grpc.push_many_alone(); }},
                                 {"push to 100 shards together, Grpc", 50, [&] { grpc.push_many(); }},
                                 {"push to 100 shards one by one, Local", 50, [&] { local.push_many_alone(); }},
                                 {"push to 100 shards together, Local", 50, [&] { local.push_many(); }},
                                 {"pull of 100 shards one by one, Grpc", 5, [&] { grpc.pull_many_alone(); }},
                                 {"pull of 100 shards together, Grpc", 50, [&] { grpc.pull_many(); }},
                                 {"pull of what changed of them, Grpc", 50, [&] { grpc.pull_many_unchanged(); }},
                                 {"pull of 100 shards one by one, Local", 50, [&] { local.pull_many_alone(); }},
                                 {"pull of 100 shards together, Local", 50, [&] { local.pull_many(); }},
                                 {"pull of what changed of them, Local", 50, [&] { local.pull_many_unchanged(); }}};
    bench::run_in_turns(rows, rounds);
    bench::print_table(rows, rounds, "a call");
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
