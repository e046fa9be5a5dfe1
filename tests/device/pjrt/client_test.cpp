#include <dist/device/pjrt/client.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include <support/what_throws.hpp>

using dist::pjrt::Client;
using dist::pjrt::ClientOptions;

TEST_CASE("a client has the devices that its plugin was asked for, by their kinds") {
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
        }).find("There is no device 3 (the platform 'cpu' has 3, which are numbered from 0)") != std::string::npos);
}

TEST_CASE("a value of another type than the plugin expects is refused") {
  for (const ClientOptions& options :
       {ClientOptions{.values = {{"cpu_device_count", std::string{"three"}}}},
        ClientOptions{.values = {{"cpu_device_count", 3.5F}}}, ClientOptions{.values = {{"cpu_device_count", true}}}})
    CHECK(support::what_throws<dist::PjrtError>([&] { Client{options}; }).find("refuses to make a client") !=
          std::string::npos);
}
