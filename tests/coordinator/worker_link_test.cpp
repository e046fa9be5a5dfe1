#include <dist/coordinator/worker_link.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "support/exception_suppressions.hpp"
#include "support/soon.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Closure;
using dist::Local;
using dist::WorkerContext;

constexpr auto add = [](WorkerContext& worker, int x) { return x + 10 * static_cast<int>(worker.index()); };
using Add = std::remove_const_t<decltype(add)>;

Closure closure(int x) {
  Closure made;
  made.message = dist::detail::closure_message<dist::WorkerList<Local>, Add, int>(add, x);
  made.function = "add";
  return made;
}

}  // namespace

TEST_CASE("a link sends queued functions to its worker until it is stopped") {
  dist_test::LocalWorkers<Local> workers(1);
  const auto state = std::make_shared<dist::detail::CoordinatorState>(
      dist::CoordinatorOptions{}, dist::rpc::ChannelOptions{}, 1, std::vector<dist::net::Endpoint>{}, 4);
  const auto link = std::make_shared<dist::WorkerLink<Local>>(state, 3, workers[0]);
  CHECK(link->describe() ==
        "worker 3 at " + to_string(workers[0]) + " has not connected for 0 s (no connection was attempted yet)");
  const Closure first = closure(1), second = closure(2);
  state->queue.put(first);
  link->start({});
  CHECK(dist::from_bytes<int>(first.result->wait(Closure::Clock::now() + 10s)) == 31);
  CHECK(state->connected == 1);
  state->queue.put(second);
  CHECK(dist::from_bytes<int>(second.result->wait(Closure::Clock::now() + 10s)) == 32);
  CHECK(support::soon(
      [&] { return link->describe() == "worker 3 at " + to_string(workers[0]) + " waits for functions"; }));
  dist::CoordinatorMetrics metrics;
  link->add_to(metrics);
  CHECK(metrics.execution.count == 2);
  state->queue.close();
  link->stop();
  link->join(Closure::Clock::now() + 10s);
  CHECK(state->connected == 0);
  CHECK(workers.service(0).sessions() == 0);
}

TEST_CASE("a link to a missing worker is stopped at once") {
  const auto state = std::make_shared<dist::detail::CoordinatorState>(
      dist::CoordinatorOptions{}, dist::rpc::ChannelOptions{}, 1, std::vector<dist::net::Endpoint>{}, 1);
  const auto link = std::make_shared<dist::WorkerLink<Local>>(state, 0, dist_test::next_local_endpoint());
  link->start({});
  std::this_thread::sleep_for(20ms);
  const auto begin = Closure::Clock::now();
  state->queue.close();
  link->stop();
  link->join(begin + 5min);
  CHECK(Closure::Clock::now() - begin < 1min);
}
