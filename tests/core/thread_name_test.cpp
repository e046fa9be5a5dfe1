#include <dist/core/thread_name.hpp>

#include <string>
#include <thread>

#include <doctest/doctest.h>

TEST_CASE("a thread has the given name, cut to the system's limit") {
  const std::string before = dist::detail::name_of_this_thread().data();
  std::string short_name;
  std::string long_name;
  std::thread([&] {
    dist::detail::name_this_thread("input");
    short_name = dist::detail::name_of_this_thread().data();
    dist::detail::name_this_thread("a name of more than fifteen characters");
    long_name = dist::detail::name_of_this_thread().data();
  }).join();
  CHECK(short_name == "input");
  CHECK(long_name == "a name of more ");
  CHECK(dist::detail::name_of_this_thread().data() == before);
}
