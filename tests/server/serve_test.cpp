#include <dist/server/serve.hpp>

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/server/client.hpp>
#include <dist/server/session.hpp>

#include <doctest/doctest.h>

#include "server/served_threads.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterSpec;
using dist::Local;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;
using dist::server::ServeOptions;
using dist_test::cluster_of;
using dist_test::ps_0;
using dist_test::ps_1;
using dist_test::served;
using dist_test::ServedThread;
using dist_test::worker_0;
using support::what_throws;
using Client = dist::server::Client<Local>;
using Session = dist::server::Session<Local>;

dist::server::ClientOptions of_store(std::uint64_t incarnation) {
  dist::server::ClientOptions options;
  options.incarnation = incarnation;
  return options;
}
ServeOptions lingering(std::chrono::milliseconds keep_alive) {
  ServeOptions options;
  options.keep_alive = keep_alive;
  return options;
}

/// A coordinator that creates variable 7 on parameter server 0, and fails.
std::uint64_t fail_with_variable(const ClusterSpec& cluster) {
  std::uint64_t incarnation = 0;
  try {
    const Session session{served(cluster)};
    incarnation = session.incarnation(ps_0);
    Client client{0, {"ps0", "1"}, of_store(incarnation)};
    client.create({7, "w", 2, 1, 0}, 1.5f);
    throw std::runtime_error("the coordinator fails");
  } catch (const std::runtime_error&) {
  }
  return incarnation;
}

}  // namespace

TEST_CASE("serve returns false in the coordinator, and rejects invalid clusters (spec J01, J12)") {
  constexpr Task chief{TaskType::chief, 0};
  ClusterSpec cluster = cluster_of(1);
  CHECK(!dist::server::serve<Local>(SimpleResolver{cluster, chief}));
  cluster.add(chief, "chief:1");
  CHECK(!dist::server::serve<Local>(SimpleResolver{cluster, chief}));
  cluster.add({TaskType::evaluator, 0}, "evaluator:1");
  for (const Task task : {chief, ps_0, worker_0})
    CHECK(what_throws<dist::InvalidArgument>([&] {
            static_cast<void>(dist::server::serve<Local>(SimpleResolver{cluster, task}));
          }).starts_with("evaluator 0 of SimpleResolver is in a cluster with parameter servers"));
}

TEST_CASE("parameter servers and workers serve until their coordinator has finished (spec J12, R01)") {
  const ClusterSpec cluster = cluster_of(2);
  ServedThread server_0{cluster, ps_0}, server_1{cluster, ps_1};
  ServedThread worker{cluster, worker_0, {}, {{"double", [](Local::Exchange& exchange) {
                                                 exchange.reply(dist::to_bytes(
                                                     2 * dist::from_bytes<int>(exchange.pieces(), "A number")));
                                               }}}};
  {
    const Session session{served(cluster)};
    for (std::size_t i = 0; i < 2; ++i) {
      Client client{i, {"ps" + std::to_string(i), "1"}, of_store(session.incarnation({TaskType::parameter_server, i}))};
      client.create({1, "w", 3, 1, 0}, static_cast<float>(i));
      std::vector<float> values(3);
      CHECK(client.pull(1, std::span{values}) == 0);
      CHECK(values == std::vector<float>(3, static_cast<float>(i)));
    }
    Local::Channel channel{{"worker", "1"}, {}};
    const std::vector<std::byte> four = dist::to_bytes(4);
    const dist::rpc::Chunk piece = four;
    const Local::Reply reply = channel.call("double", {&piece, 1}, {60s, true});
    CHECK(dist::from_bytes<int>(reply.pieces(), "A number") == 8);
    while (session.incarnation(worker_0) == 0) std::this_thread::sleep_for(1ms);
    CHECK(!server_0.ends_within(0ms));
    CHECK(!worker.ends_within(0ms));
  }
  CHECK(server_0.result());
  CHECK(server_1.result());
  CHECK(worker.result());
}

TEST_CASE("the wait for a coordinator has a limit") {
  ClusterSpec cluster = cluster_of(1);
  ServeOptions options;
  options.wait_for_coordinator = 60ms;
  const auto refusal = [&] {
    return what_throws<dist::DeadlineExceeded>([&] {
      static_cast<void>(dist::server::serve<Local>(SimpleResolver{cluster, ps_0}, options));
    });
  };
  CHECK(refusal() ==
        "ps 0 at ps0:1 has no coordinator (a coordinator did not connect within 0.06 s). Start the coordinator with "
        "the same list of tasks, or wait longer for it (wait_for_coordinator).");
  cluster.add({TaskType::chief, 0}, "chief:1");
  CHECK(refusal().find("(chief 0 at chief:1 did not connect within 0.06 s)") != std::string::npos);
}

TEST_CASE("a parameter server keeps its variables for another coordinator (spec L22)") {
  const ClusterSpec cluster = cluster_of(1);
  ServedThread server{cluster, ps_0, lingering(60s)};
  const std::uint64_t incarnation = fail_with_variable(cluster);
  CHECK(!server.ends_within(200ms));
  {
    const Session session{served(cluster), {.takes_over = true}};
    CHECK(session.incarnation(ps_0) == incarnation);
    Client client{0, {"ps0", "1"}, of_store(incarnation)};
    const auto held = client.list();
    REQUIRE(held.size() == 1);
    CHECK(held.front().spec.name == "w");
    std::vector<float> values(2);
    client.pull(7, std::span{values});
    CHECK(values == std::vector<float>{1.5f, 1.5f});
  }
  CHECK(server.result());
}

TEST_CASE("a process that has lost its coordinator fails") {
  ClusterSpec cluster = cluster_of(1);
  {
    ServedThread server{cluster, ps_0, lingering(0ms)};
    fail_with_variable(cluster);
    CHECK(what_throws<dist::CoordinatorUnavailable>([&] { static_cast<void>(server.result()); }) ==
          "ps 0 at ps0:1 has lost its coordinator (a coordinator disconnected without notice). Start the job again "
          "from its last checkpoint.");
  }
  cluster.add({TaskType::chief, 0}, "chief:1");
  ServedThread server{cluster, ps_0, lingering(200ms)};
  fail_with_variable(cluster);
  CHECK(what_throws<dist::CoordinatorUnavailable>([&] {
          static_cast<void>(server.result());
        }).find("(chief 0 at chief:1 disconnected without notice, and did not return within 0.2 s)") !=
        std::string::npos);
}

TEST_CASE("a process ends with the status set by its coordinator") {
  const ClusterSpec cluster = cluster_of(1);
  ServedThread server{cluster, ps_0};
  { const Session of_a_finished_job{served(cluster)}; }
  CHECK(server.result());
  ServedThread again{cluster, ps_0};
  {
    const dist::detail::SignalFlag flag{SIGUSR2};
    const Session session{served(cluster)};
    dist::detail::SignalFlag::obey(42);
  }
  try {
    static_cast<void>(again.result());
    FAIL("the end of a preempted job is no end of its work");
  } catch (const dist::Preempted& error) {
    CHECK(dist::exit_code(error) == 42);
    CHECK(std::string{error.what()} ==
          "ps 0 at ps0:1 exits because the job received a stop request (a coordinator ended the job with status 42). "
          "Start the job again: it continues.");
  }
  const dist::detail::SignalFlag flag{SIGUSR2};  // clears the status
}

TEST_CASE("time limits of processes exceed a suspension by a container's CPU quota") {
  constexpr auto throttled = 20s;
  CHECK(dist::rpc::ServerOptions{}.silence > throttled);
  CHECK(dist::rpc::ChannelOptions{}.silence > throttled);
  CHECK(ServeOptions{}.end_timeout > throttled);
  CHECK(ServeOptions{}.leave_timeout > throttled);
  CHECK(ServeOptions{}.leave_timeout < 30s);  // the grace period of clusters before they kill a process
}

TEST_CASE("loopback addresses are rejected if clients are on other hosts") {
  using dist::server::detail::has_other_hosts;
  const ClusterSpec here{{TaskType::worker, {"localhost:1", "127.0.0.1:2"}}};
  CHECK(!has_other_hosts(here, {"localhost", "1"}, "a test"));
  const ClusterSpec elsewhere{{TaskType::worker, {"a:1", "b:1"}}};
  CHECK(has_other_hosts(elsewhere, {"a", "1"}, "a test"));
  CHECK(!has_other_hosts({{TaskType::worker, {"a:1", "a:2"}}}, {"a", "1"}, "a test"));
}
