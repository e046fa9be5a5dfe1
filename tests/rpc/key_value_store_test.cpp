#include <dist/rpc/key_value_store.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dist/rpc/local_transport.hpp>
#include <support/what_throws.hpp>

using namespace std::chrono_literals;
using Store = dist::KeyValueStore<dist::Local>;

namespace {

/// The options of process `process` of three, which share a separate store for each `job`.
dist::KeyValueOptions options(const std::string& job, std::size_t process) {
  return {.keeper = {"keeper", job}, .process = process, .hosts = {"a", "b", "c"}, .timeout = 50ms};
}

}  // namespace

TEST_CASE("get returns the value to processes that wait for it, and to later ones") {
  Store keeper{options("1", 0)};
  CHECK(keeper.process() == 0);
  CHECK(keeper.processes() == 3);
  std::string got;
  std::thread waiter{[&] { got = Store{options("1", 1)}.get("devices/2", 60s); }};
  const std::string bytes{"four\0devices", 12};
  Store{options("1", 2)}.put("devices/2", bytes);
  waiter.join();
  CHECK(got == bytes);
  CHECK(keeper.get("devices/2", 60s) == bytes);
  CHECK(keeper.try_get("devices/2") == bytes);
  CHECK_FALSE(keeper.try_get("devices/1"));
  keeper.put("devices/1", "");
  CHECK(keeper.try_get("devices/1") == "");
}

TEST_CASE("a timeout names the key and the missing processes, and a late value is kept") {
  Store keeper{options("2", 0)};
  Store first{options("2", 1)};
  first.put("devices/1", "4");
  const auto message = [&] {
    return support::what_throws<dist::DeadlineExceeded>([&] { static_cast<void>(keeper.get("devices/2", 20ms)); });
  };
  CHECK(message() ==
        "No process has put the key 'devices/2' within 0.02 s (process 2 on host 'c' has not arrived). Start all "
        "processes, with the same list of hosts.");
  Store second{options("2", 2)};
  CHECK_FALSE(second.try_get("devices/2"));
  CHECK(message() ==
        "No process has put the key 'devices/2' within 0.02 s (all 3 processes have arrived). Check what prevents them "
        "from putting it.");
  second.put("devices/2", "4");
  CHECK(keeper.get("devices/2", 60s) == "4");
}

TEST_CASE("every call that waits for process 0 has a time limit") {
  Store second{options("3", 1)};
  const std::string expected =
      "process 0 on host 'a', which stores the values of all processes, did not arrive at keeper:3 within 0.05 s (the "
      "key 'x' was requested). Start it with the same address, and check that no firewall blocks the port.";
  const auto message = [](auto&& call) { return support::what_throws<dist::DeadlineExceeded>(call); };
  CHECK(message([&] { static_cast<void>(second.get("x", 50ms)); }) == expected);
  CHECK(message([&] { static_cast<void>(second.try_get("x")); }) == expected);
  CHECK(message([&] { second.put("x", "1"); }) == expected);
}

TEST_CASE("the end of process 0 is an error for waiting processes") {
  auto keeper = std::make_unique<Store>(options("4", 0));
  std::string said;
  std::thread waiter{[&] {
    said = support::what_throws<dist::Unavailable>(
        [] { static_cast<void>(Store{options("4", 1)}.get("devices/0", 60s)); });
  }};
  // The waiter has arrived when a wait for an unused key names only process 2.
  while (support::what_throws([&] { static_cast<void>(keeper->get("nothing", 5ms)); }).find("(process 2 ") ==
         std::string::npos) {
  }
  keeper.reset();
  waiter.join();
  CHECK(said.find("Worker 0 on host a is gone (") == 0);
  CHECK(said.find("while the key 'devices/0' was requested") != std::string::npos);
}

TEST_CASE("a key has one value: the same one may be put again, another one is rejected with the first process") {
  Store keeper{options("5", 0)};
  Store{options("5", 2)}.put("x", "1");
  keeper.put("x", "1");
  CHECK(support::what_throws<dist::InvalidArgument>([&] { keeper.put("x", "2"); }) ==
        "The key 'x' is put twice, with different values (process 2 on host 'c' was first). Give each process its own "
        "keys.");
  CHECK(keeper.try_get("x") == "1");
}

TEST_CASE("processes with different counts are rejected, and so is one that is not in the list") {
  const Store keeper{options("6", 0)};
  dist::KeyValueOptions two = options("6", 1);
  two.hosts.pop_back();
  CHECK(support::what_throws<dist::RpcError>([&] {
          Store{two}.put("x", "1");
        }).find("process 0 counts 3, and process 1 counts 2") != std::string::npos);
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          Store{options("6", 3)};
        }).find("it is process 3, and the list has 3 hosts") != std::string::npos);
}
