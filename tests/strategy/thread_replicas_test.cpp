#include <dist/strategy/thread_replicas.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>
#include <dist/device/affinity.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/stderr_of.hpp"

using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

static_assert(std::is_same_v<dist::ThreadedOptions, dist::MirroredOptions>);  // the name before version 0.3

namespace {

std::vector<std::string> all_devices() {
  std::vector<std::string> names;
  for (std::size_t device = 0; device < dist::Cpu::count(); ++device) names.push_back(dist::Cpu::device_name(device));
  return names;
}

}  // namespace

TEST_CASE_TEMPLATE("a replica runs on each named device, in that order (spec A01, A02)", S, Shared, Central) {
  std::vector<std::string> names = all_devices();
  std::vector<std::string> backwards(names.rbegin(), names.rend());
  S strategy{backwards};
  CHECK(strategy.num_replicas_in_sync() == names.size());
  std::string line;
  for (const std::string& name : backwards) line += " " + name;
  CHECK(strategy.describe().find(" on" + line) != std::string::npos);
  const std::vector<std::size_t> processors = dist::allowed_processors();
  const auto places = strategy.run([](auto&) { return dist::detail::processors_of_thread(0); });
  for (std::size_t r = 1; r < names.size(); ++r)
    CHECK(places[r] == std::vector<std::size_t>{processors[names.size() - 1 - r]});
}

namespace {

/// Four devices; two replicas should use the last and the second.
struct FourDevices {
  static constexpr std::string_view type = "cpu";
  static std::size_t count() { return 4; }
  static std::vector<std::size_t> placement(std::size_t replicas) {
    std::vector<std::size_t> devices{3, 1, 2, 0};
    devices.resize(std::min(replicas, devices.size()));
    return devices;
  }
  static void refuse(std::string_view name) { throw dist::InvalidArgument(name, "there are four", "Name one of them"); }
};
/// No devices, with a reason.
struct NoDevices : FourDevices {
  static std::size_t count() { return 0; }
  static std::vector<std::size_t> placement(std::size_t replicas) {
    if (replicas > 0) throw dist::InvalidArgument("none", "of none", "None");
    return {};
  }
};

}  // namespace

TEST_CASE("by default the device's type places the replicas; named devices are unchanged (spec A01, A02)") {
  using Numbers = std::vector<std::size_t>;
  const auto places = [](const dist::MirroredOptions& options) {
    return dist::detail::replica_placement<FourDevices>(options);
  };
  CHECK(places({}).replicas == 4);
  CHECK(places({}).devices == Numbers{3, 1, 2, 0});
  CHECK(places({.replicas = 2}).replicas == 2);
  CHECK(places({.replicas = 2}).devices == Numbers{3, 1});
  CHECK(places({.replicas = 9}).replicas == 9);
  CHECK(places({.replicas = 9}).devices == Numbers{3, 1, 2, 0});
  CHECK(places({.devices = {"/cpu:0", "/cpu:2", "/cpu:1"}}).devices == Numbers{0, 2, 1});
}

TEST_CASE("the device's type reports the available devices, and why there are none") {
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::detail::replica_placement<FourDevices>({.devices = {"/cpu:4"}})),
                       "/cpu:4 (there are four). Name one of them.", dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::detail::replica_placement<NoDevices>({})), "none (of none). None.",
                       dist::InvalidArgument);
}

TEST_CASE("more replicas than devices, requested by number, cause one warning") {
  const auto said = [](auto ask) {
    return testing::stderr_of([&] {
             unsetenv("DIST_WARNINGS");
             std::construct_at(&dist::detail::shared_devices);  // resets earlier warnings
             for (int call = 0; call < 2; ++call) static_cast<void>(dist::detail::replica_placement<FourDevices>(ask));
           })
        .stderr_text;
  };
  CHECK(said(dist::MirroredOptions{.replicas = 9}) ==
        "dist: 9 replicas share 4 devices (cpu), which makes each of them slower. Leave the number out for one replica "
        "on each device. DIST_WARNINGS=0 silences this.\n");
  CHECK(said(dist::MirroredOptions{.replicas = 4}).empty());
  CHECK(said(dist::MirroredOptions{}).empty());
}

TEST_CASE_TEMPLATE("replicas are on the devices where they are placed, and describe names them (spec D11)", S, Shared,
                   Central) {
  const std::vector<std::size_t> processors = dist::allowed_processors();
  for (const std::size_t replicas : {std::size_t{1}, dist::Cpu::count(), dist::Cpu::count() + 1}) {
    S strategy{replicas};
    const std::vector<std::size_t> devices = dist::Cpu::placement(replicas);
    const auto allowed = strategy.run([](auto&) { return dist::detail::processors_of_thread(0); });
    std::string line;
    for (const std::size_t device : devices) line += " " + dist::Cpu::device_name(device);
    CHECK(strategy.describe().find(" on" + line) != std::string::npos);
    const std::vector<std::string> names = strategy.worker_devices();
    REQUIRE(names.size() == replicas);
    for (std::size_t r = 0; r < replicas; ++r) {
      CHECK(names[r] == dist::Cpu::device_name(devices[r % devices.size()]));
      if (r > 0 && devices.size() == replicas) CHECK(allowed[r] == std::vector<std::size_t>{processors[devices[r]]});
    }
  }
}

TEST_CASE_TEMPLATE("invalid, duplicate and missing devices, and devices of another type, are refused (spec A01)", S,
                   Shared, Central) {
  using Names = std::vector<std::string>;
  CHECK_THROWS_AS(S{Names{}}, dist::InvalidArgument);
  CHECK_THROWS_AS((S{Names{"/cpu:0", "CPU:0"}}), dist::InvalidArgument);
  CHECK_THROWS_AS(S{Names{dist::Cpu::device_name(dist::Cpu::count())}}, dist::InvalidArgument);
  CHECK_THROWS_AS(S{Names{"/gpu:0"}}, dist::InvalidArgument);
  CHECK_THROWS_AS(S{Names{"/job:worker/cpu:0"}}, dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((S{dist::MirroredOptions{.devices = Names{"/cpu:0"}, .replicas = 2}}),
                       "A strategy was given devices and a different number of replicas (1 devices, 2 replicas). Give "
                       "one of the two: each device takes one replica.",
                       dist::InvalidArgument);
  CHECK((S{dist::MirroredOptions{.devices = Names{"/cpu:0"}, .replicas = 1}}).num_replicas_in_sync() == 1);
  CHECK_THROWS_AS(S{std::size_t{0}}, dist::InvalidArgument);
}

TEST_CASE("replicas that are not pinned are placed by the system") {
  Shared strategy{dist::MirroredOptions{.replicas = 2, .pinned = false}};
  const auto places = strategy.run([](auto&) { return dist::detail::processors_of_thread(0); });
  CHECK(places[1] == dist::allowed_processors());
}

TEST_CASE("a strategy created in a pinned thread can use all devices of the process") {
  std::size_t replicas = 0;
  std::thread([&] {
    dist::pin_this_thread(dist::allowed_processors().back());
    replicas = Shared{}.num_replicas_in_sync();
  }).join();
  CHECK(replicas == dist::Cpu::count());
}

TEST_CASE("runs of concurrent threads are serialised, so collectives do not mix (spec H20)") {
  Shared strategy{3};
  constexpr int rounds = 100;
  std::atomic<int> wrong{0};
  const auto launch = [&](int mine) {
    for (int round = 0; round < rounds; ++round) {
      const auto sums = strategy.run([&](auto& replica) {
        int total = 0;
        for (int step = 0; step < 5; ++step) total += replica.all_reduce(dist::sum, mine);
        return total;
      });
      for (const int sum : sums)
        if (sum != 15 * mine) ++wrong;
    }
  };
  std::thread first(launch, 1);
  std::thread second(launch, 100);
  launch(10000);
  first.join();
  second.join();
  CHECK(wrong == 0);
}

TEST_CASE("a mirrored run with a timeout stops waiting for another thread's run") {
  using namespace std::chrono_literals;
  Shared strategy{dist::MirroredOptions{.replicas = 2, .communication = {.timeout = 20ms}}};
  std::atomic<bool> running{false};
  std::atomic<bool> refused{false};
  std::thread second([&] {
    while (!running) std::this_thread::yield();
    try {
      strategy.run([](auto&) {});
    } catch (const dist::DeadlineExceeded&) {
      refused = true;
    }
  });
  strategy.run([&](auto&) {
    running = true;
    while (!refused) std::this_thread::yield();
  });
  second.join();
  CHECK(refused);
}

TEST_CASE("the options of a call override the strategy's, including the timeout (spec H13, H15)") {
  using namespace std::chrono_literals;
  Shared strategy{dist::MirroredOptions{.replicas = 2, .communication = {.bytes_per_pack = 100, .timeout = 1min}}};
  CHECK(strategy.communication().bytes_per_pack == 100);
  std::atomic<bool> refused{false};
  std::string message;
  try {
    strategy.run([&](auto& replica) {
      std::vector<float> values(3);
      const std::span<float> tensor{values};
      if (replica.local_index() == 1)
        while (!refused) std::this_thread::yield();
      try {
        replica.all_reduce(dist::sum, std::span<const std::span<float>>{&tensor, 1}, {.timeout = 20ms});
      } catch (...) {
        refused = true;
        throw;
      }
    });
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::DeadlineExceeded);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("and waited 0.02") != std::string::npos);
}

TEST_CASE("the type defines the implementation of collectives, and options for another are refused (spec H14)") {
  const dist::CommunicationOptions nccl{.implementation = dist::Implementation::nccl};
  CHECK_THROWS_WITH_AS((Shared{dist::MirroredOptions{.replicas = 1, .communication = nccl}}),
                       "The options of a strategy select an implementation of collectives (the type of the strategy "
                       "selects it). Name the implementation in the type, as in Mirrored<RingAllReduce>.",
                       dist::InvalidArgument);
}

TEST_CASE("a timeout of 0 waits without limit (spec H13)") {
  Shared strategy{dist::MirroredOptions{.replicas = 2, .communication = {.timeout = std::chrono::nanoseconds{0}}}};
  std::atomic<bool> running{false};
  std::thread second([&] {
    while (!running) std::this_thread::yield();
    strategy.run([](auto&) {});
  });
  strategy.run([&](auto& replica) {
    running = true;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    replica.barrier();
  });
  second.join();
  CHECK(running);
}

TEST_CASE("TF_CONFIG does not affect single-process strategies (spec A03)") {
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})", 1);
  const std::size_t replicas = Shared{3}.num_replicas_in_sync();
  unsetenv("TF_CONFIG");
  CHECK(replicas == 3);
}

TEST_CASE("a trace file has each replica's run, its collectives and its input") {
  const std::string path = "threaded_trace.json";
  {
    const dist::TraceFile trace{path};
    dist::Mirrored<dist::ThreadAllReduce> strategy{2};
    for (const auto& batch : strategy.distribute_dataset(dist::data::range(8) | dist::data::batch(4)))
      strategy.run([](auto& replica, const auto&) { static_cast<void>(replica.all_reduce(dist::sum, 1)); }, batch);
  }
  std::ifstream file{path};
  const std::string json{std::istreambuf_iterator<char>{file}, {}};
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = json.find(part); at != std::string::npos; at = json.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("\"name\":\"run\",\"args\":{\"number\":0}") == 2);
  CHECK(count("\"name\":\"run\",\"args\":{\"number\":1}") == 2);
  CHECK(count("\"name\":\"all_reduce\",\"args\":{\"number\":0}") == 2);
  CHECK(count("\"name\":\"all_reduce\",\"args\":{\"number\":1}") == 2);
  CHECK(count("\"name\":\"make batch\"") == 3);  // the last one finds the end
  CHECK(count("\"name\":\"dist replica 1\"") == 1);
  CHECK(count("\"name\":\"dist input\"") == 1);
  std::remove(path.c_str());
}
