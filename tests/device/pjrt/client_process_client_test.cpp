// alone
#include <dist/device/pjrt/client.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include <support/what_throws.hpp>

using dist::pjrt::ClientOptions;

TEST_CASE("the client of the process is created once, from the environment") {
  setenv("DIST_PJRT_VALUES", "cpu_device_count=many", 1);  // not the type that the plugin expects
  CHECK(support::what_throws<dist::PjrtError>([] {
          static_cast<void>(dist::pjrt::process_client());
        }).find("refuses to make a client") != std::string::npos);
  setenv("DIST_PJRT_VALUES", "cpu_device_count=3", 1);
  const dist::pjrt::Client client = dist::pjrt::process_client();
  CHECK(client.devices().size() == 3);
  CHECK(dist::pjrt::process_client().get() == client.get());
  CHECK(dist::pjrt::process_client(client.api().path()).get() == client.get());
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(dist::pjrt::process_client("/nowhere/plugin.so"));
        }).find("' is in use, and '/nowhere/plugin.so' was requested") != std::string::npos);
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          dist::pjrt::set_process_options({});
        }).find("it has already been created, on platform 'cpu'") != std::string::npos);
}

TEST_CASE("plugin values are parsed as integers, booleans, numbers, or else text") {
  const auto values_of = [](const char* list) {
    setenv("DIST_PJRT_VALUES", list, 1);
    return dist::pjrt::detail::options_of_environment().values;
  };
  using Values = decltype(ClientOptions::values);
  CHECK(values_of("").empty());
  CHECK(values_of("a=-4,b=true,c=false,d=0.5,e=4 cores,f=") == Values{{"a", std::int64_t{-4}},
                                                                      {"b", true},
                                                                      {"c", false},
                                                                      {"d", 0.5F},
                                                                      {"e", std::string{"4 cores"}},
                                                                      {"f", std::string{}}});
  for (const char* const list : {"a", "=4", "a=1,,b=2"})
    CHECK(support::what_throws<dist::InvalidArgument>([&] { values_of(list); }).find("is not of the form name=value") !=
          std::string::npos);
}
