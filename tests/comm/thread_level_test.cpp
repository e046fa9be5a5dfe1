#include <dist/comm/thread_level.hpp>

#include <doctest/doctest.h>

TEST_CASE("levels are in the order of the threads that they allow") {
  CHECK(dist::ThreadLevel::single < dist::ThreadLevel::funneled);
  CHECK(dist::ThreadLevel::funneled < dist::ThreadLevel::serialized);
  CHECK(dist::ThreadLevel::serialized < dist::ThreadLevel::multiple);
}
