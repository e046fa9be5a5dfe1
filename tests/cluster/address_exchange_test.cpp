#include <dist/cluster/address_exchange.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <net/ports.hpp>

using namespace std::chrono_literals;
using dist::net::AddressServerOptions;
using dist::net::Endpoint;

namespace {

struct Outcome {
  std::vector<Endpoint> addresses;
  std::string error;
};

/// Runs the exchange with `world` workers, one thread each; `change(options, rank)` may modify a worker's options.
std::vector<Outcome> meet(std::size_t world,
                          const std::function<void(AddressServerOptions&, std::size_t)>& change = {}) {
  const Endpoint place = dist_test::free_endpoints(1).front();
  std::vector<Outcome> outcomes(world);
  std::vector<std::thread> workers;
  for (std::size_t rank = 0; rank < world; ++rank)
    workers.emplace_back([&, rank] {
      AddressServerOptions options;
      options.place = place;
      options.rank = rank;
      options.world = world;
      options.deadline = 20s;
      if (change) change(options, rank);
      try {
        outcomes[rank].addresses = exchange_addresses(options);
      } catch (const dist::DeadlineExceeded& error) {
        outcomes[rank].error = dist::concat("deadline: ", error.what());
      } catch (const dist::RendezvousError& error) {
        outcomes[rank].error = dist::concat("rendezvous: ", error.what());
      }
    });
  for (std::thread& worker : workers) worker.join();
  return outcomes;
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'" << part << "' is not in: " << text);
  return found;
}

}  // namespace

TEST_CASE("workers with one address receive all: one host per machine, one port per worker") {
  for (const std::size_t world : {1U, 2U, 5U}) {
    const std::vector<Outcome> outcomes = meet(
        world, [](AddressServerOptions& options, std::size_t) { options.secret = "0123456789abcdef0123456789abcdef"; });
    REQUIRE(outcomes[0].addresses.size() == world);
    const std::size_t first_port = std::stoul(outcomes[0].addresses[0].port);
    for (std::size_t rank = 0; rank < world; ++rank) {
      CHECK(outcomes[rank].error == "");
      CHECK(outcomes[rank].addresses == outcomes[0].addresses);
      CHECK(outcomes[0].addresses[rank].host == "127.0.0.1");
      const std::size_t port = std::stoul(outcomes[0].addresses[rank].port);
      CHECK((port == first_port + rank || (first_port + rank > 65535 && port == first_port - rank)));
    }
  }
}

TEST_CASE("workers of another machine are numbered from the first port that is free there") {
  const std::vector<Outcome> outcomes =
      meet(4, [](AddressServerOptions& options, std::size_t rank) { options.machine = rank % 2 == 0 ? "one" : "two"; });
  const std::vector<Endpoint>& addresses = outcomes[3].addresses;
  REQUIRE(addresses.size() == 4);
  // Both machines are this one, so the rendezvous port is in use on the other.
  const auto port = [&](std::size_t rank) { return std::stoul(addresses[rank].port); };
  CHECK(port(1) > port(0));
  CHECK(port(2) == port(0) + 1);
  CHECK(port(3) == port(1) + 1);
}

TEST_CASE("late workers are awaited, including worker 0") {
  for (const std::size_t late : {0U, 2U}) {
    const std::vector<Outcome> outcomes = meet(3, [&](AddressServerOptions&, std::size_t rank) {
      if (rank == late) std::this_thread::sleep_for(300ms);
    });
    for (const Outcome& outcome : outcomes) CHECK(outcome.addresses.size() == 3);
  }
}

TEST_CASE("a missing worker is named") {
  const std::vector<Outcome> outcomes = meet(3, [](AddressServerOptions& options, std::size_t rank) {
    options.deadline = 500ms;
    if (rank == 2) options.place = dist_test::free_endpoints(1).front();
  });
  CHECK(contains(outcomes[0].error, "deadline: Worker 2 has not joined the rendezvous of worker 0 at 127.0.0.1:"));
  CHECK(contains(outcomes[0].error, " within 0.5 s (no connection arrived)"));
  CHECK(contains(outcomes[1].error, "deadline: "));
  CHECK(contains(outcomes[2].error, "deadline: The worker that hosts the rendezvous at 127.0.0.1:"));
}

TEST_CASE("jobs with the same rendezvous ports do not disturb each other") {
  const std::vector<Endpoint> places = dist_test::free_endpoints(2);
  for (const std::string secret : {"", "0123456789abcdef0123456789abcdef"}) {
    // Both jobs derive the same first port; the second one uses the other.
    std::vector<Outcome> jobs[2];
    std::vector<std::thread> runs;
    for (std::size_t job = 0; job < 2; ++job)
      runs.emplace_back([&, job] {
        jobs[job] = meet(3, [&](AddressServerOptions& options, std::size_t) {
          options.place = places[0];
          options.other_ports = {static_cast<std::uint16_t>(std::stoul(places[1].port))};
          options.job = std::to_string(job);
          options.secret = secret;
        });
      });
    for (std::thread& run : runs) run.join();
    for (const std::vector<Outcome>& job : jobs)
      for (const Outcome& outcome : job) {
        CHECK(outcome.error == "");
        CHECK(outcome.addresses == job[0].addresses);
        CHECK(outcome.addresses.size() == 3);
      }
  }
}

TEST_CASE("if no port is free, the error names MASTER_PORT") {
  const std::vector<Endpoint> places = dist_test::free_endpoints(1);
  const dist::io::Descriptor holder = dist::net::listen_at(places[0], {});
  const std::vector<Outcome> outcomes =
      meet(1, [&](AddressServerOptions& options, std::size_t) { options.place = places[0]; });
  CHECK(contains(outcomes[0].error, "rendezvous: This task cannot listen at its own address "));
  CHECK(contains(outcomes[0].error, "Choose another MASTER_PORT"));
}

TEST_CASE("a duplicate rank, another number of workers and a wrong secret are refused") {
  const auto short_deadline = [](AddressServerOptions& options) { options.deadline = 1s; };
  const std::vector<Outcome> twice = meet(3, [&](AddressServerOptions& options, std::size_t rank) {
    short_deadline(options);
    if (rank == 2) options.rank = 1;
  });
  CHECK(contains(twice[1].error + twice[2].error, "rendezvous: Worker 1 has joined twice"));
  CHECK(contains(twice[0].error, "Worker 2 has not joined"));

  const std::vector<Outcome> other = meet(2, [&](AddressServerOptions& options, std::size_t rank) {
    short_deadline(options);
    options.secret = "0123456789abcdef0123456789abcdef";
    if (rank == 1) options.world = 3;
  });
  for (const Outcome& outcome : other) CHECK(contains(outcome.error, "its list has 3 tasks, the list here has 2"));

  const std::vector<Outcome> stranger = meet(2, [&](AddressServerOptions& options, std::size_t rank) {
    short_deadline(options);
    options.secret = rank == 0 ? "0123456789abcdef0123456789abcdef" : "another one, another one, another";
  });
  CHECK(contains(stranger[1].error, "does not have the secret of the job"));
  CHECK(contains(stranger[0].error, "Worker 1 has not joined"));
}
