#include <dist/device/pjrt/processes.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dist/device/pjrt/client.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/rpc/key_value_store.hpp>
#include <net/ports.hpp>
#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/grpc_suppressions.hpp>
#include <support/processes.hpp>

using namespace std::chrono_literals;
using Store = dist::KeyValueStore<dist::Grpc>;

static_assert(dist::detail::satisfied<dist::pjrt::SharesValues<Store>>);

TEST_CASE("plugins in two processes exchange their device counts by gRPC") {
  const dist::net::Endpoint keeper = dist_test::free_endpoints(1).front();
  const std::string plugin = fake_pjrt::plugin();
  support::Processes processes{
      2, [&](std::size_t process) {
        const auto store = std::make_shared<Store>(
            dist::KeyValueOptions{.keeper = keeper, .process = process, .hosts = {"a", "b"}, .secret = "secret"});
        const dist::pjrt::Client client{
            {.plugin = plugin, .values = {{"devices", static_cast<std::int64_t>(2 + process)}}, .processes = store}};
        // Process 0 stays until process 1 has received the count.
        if (process == 1)
          store->put("heard", "");
        else
          static_cast<void>(store->get("heard", 60s));
        return client.version() == "fake devices/0=2 devices/1=3" && client.devices().size() == 2 + process ? 0 : 1;
      }};
  CHECK(processes.wait() == std::vector<int>{0, 0});
}
