#include <dist/device/pjrt/client.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <dist/rpc/key_value_store.hpp>
#include <dist/rpc/local_transport.hpp>
#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/what_throws.hpp>

using namespace std::chrono_literals;
using dist::pjrt::Client;
using dist::pjrt::ClientOptions;
using Store = dist::KeyValueStore<dist::Local>;

namespace {

/// Returns the store of process `process` of two, with the fake plugin. `job` separates the stores of tests.
std::shared_ptr<Store> store_of(const std::string& job, std::size_t process) {
  return std::make_shared<Store>(
      dist::KeyValueOptions{.keeper = {"keeper", job}, .process = process, .hosts = {"a", "b"}});
}
ClientOptions fake(std::shared_ptr<Store> store) {
  return {.plugin = fake_pjrt::plugin(), .processes = std::move(store)};
}

/// A store of two processes, whose calls fail.
struct FailingStore {
  std::function<void()> fail;

  static std::size_t process() { return 0; }
  static std::size_t processes() { return 2; }
  std::string get(std::string_view, std::chrono::milliseconds) {
    fail();
    return "";
  }
  static std::optional<std::string> try_get(std::string_view) { return std::nullopt; }
  static void put(std::string_view, std::string_view) {}
};

}  // namespace

TEST_CASE("a client has the requested devices, with their kinds") {
  const Client client{{.values = {{"cpu_device_count", std::int64_t{3}}}}};
  CHECK(client.platform() == "cpu");
  CHECK_FALSE(client.version().empty());
  REQUIRE(client.devices().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(client.device(i).kind == "cpu");
    CHECK(client.device(i).handle == client.devices()[i].handle);
    if (i > 0) CHECK(client.device(i).id != client.device(0).id);
  }
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(client.device(3));
        }).find("Device 3 does not exist (the platform 'cpu' has 3, numbered from 0)") != std::string::npos);
}

TEST_CASE("a value of the wrong type is rejected") {
  for (const ClientOptions& options :
       {ClientOptions{.values = {{"cpu_device_count", std::string{"three"}}}},
        ClientOptions{.values = {{"cpu_device_count", 3.5F}}}, ClientOptions{.values = {{"cpu_device_count", true}}}})
    CHECK(support::what_throws<dist::PjrtError>([&] { Client{options}; }).find("refuses to make a client") !=
          std::string::npos);
}

TEST_CASE("plugins of several processes exchange their devices through the store") {
  const auto first = store_of("1", 0);
  ClientOptions second = fake(store_of("1", 1));
  second.values = {{"devices", std::int64_t{2}}};
  std::string heard;
  std::thread other{[&] {
    const Client client{second};
    heard = client.version();
    CHECK(client.process() == 1);
    REQUIRE(client.devices().size() == 2);
    CHECK(client.device(0).id == 4);
    CHECK(client.device(0).process == 1);
  }};
  const Client client{fake(first)};
  other.join();
  CHECK(client.version() == "fake devices/0=4 devices/1=2");
  CHECK(heard == client.version());
  CHECK(client.process() == 0);
  REQUIRE(client.devices().size() == 4);
  CHECK(client.device(3).id == 3);
  CHECK(client.device(3).kind == "TPU v0");
}

TEST_CASE("a missing process throws with the key, after the shorter timeout of plugin and client") {
  const std::string expected =
      "No process has put the key 'devices/1' within 0.02 s (process 1 on host 'b' has not arrived). Start all "
      "processes, with the same list of hosts.";
  ClientOptions impatient = fake(store_of("2", 0));
  impatient.timeout = 20ms;
  CHECK(support::what_throws<dist::DeadlineExceeded>([&] { Client{impatient}; }) == expected);
  ClientOptions plugin = fake(store_of("3", 0));
  plugin.values = {{"timeout_ms", std::int64_t{20}}};
  CHECK(support::what_throws<dist::DeadlineExceeded>([&] { Client{plugin}; }) == expected);
  plugin.values.emplace_back("other_error", std::int64_t{1});
  CHECK(support::what_throws<dist::PjrtError>([&] { Client{plugin}; }).find("(something else)") != std::string::npos);
}

TEST_CASE("two plugins that claim the same process are rejected") {
  ClientOptions twice = fake(store_of("4", 0));
  twice.values = {{"put_for", std::int64_t{1}}, {"timeout_ms", std::int64_t{20}}};
  CHECK_THROWS_AS(Client{twice}, dist::DeadlineExceeded);
  ClientOptions other = fake(store_of("4", 1));
  other.values = {{"devices", std::int64_t{3}}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          Client{other};
        }).find("The key 'devices/1' is put twice, with different values (process 0 on host 'a' was first)") == 0);
}

TEST_CASE("the CPU plugin accepts the callbacks, and supports one process") {
  const Client client{{.values = {{"cpu_device_count", std::int64_t{2}}}, .processes = store_of("5", 0)}};
  CHECK(client.process() == 0);
  CHECK(client.devices().size() == 2);
}

TEST_CASE("the client rethrows exceptions of a store unchanged") {
  const auto client_with = [](std::function<void()> fail) {
    Client{{.plugin = fake_pjrt::plugin(), .processes = std::make_shared<FailingStore>(FailingStore{std::move(fail)})}};
  };
  try {
    client_with([] { throw dist::Unavailable(1, "b", "it was killed", ""); });
    FAIL("nothing was thrown");
  } catch (const dist::Unavailable& gone) {
    CHECK(gone.host() == "b");
  }
  CHECK_THROWS_WITH_AS(client_with([] { throw std::runtime_error("no store"); }), "no store", std::runtime_error);
}

TEST_CASE("an unknown device of a plugin is rejected") {
  const Client client{{.plugin = fake_pjrt::plugin(), .values = {{"devices", std::int64_t{0}}}}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(client.device(0));
        }).find("Device 0 does not exist (the platform 'fake tpu' has 0") != std::string::npos);
}
