#include <dist/comm/communication_options.hpp>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>

#include <chrono>
#include <type_traits>

using dist::CommunicationOptions;
using dist::Implementation;
using namespace std::chrono_literals;

TEST_CASE("all options are unset by default (spec H14)") {
  const CommunicationOptions options;
  CHECK(options.bytes_per_pack == 0);
  CHECK(!options.timeout);
  CHECK(options.implementation == Implementation::automatic);
}

TEST_CASE("merge takes the options that are set in the argument (spec H13, H15)") {
  const CommunicationOptions mine{.bytes_per_pack = 100, .timeout = 5s, .implementation = Implementation::ring};
  const CommunicationOptions same = mine.merge({});
  CHECK(same.bytes_per_pack == 100);
  CHECK(same.timeout == 5s);
  CHECK(same.implementation == Implementation::ring);
  const CommunicationOptions other =
      mine.merge({.bytes_per_pack = 7, .timeout = 1s, .implementation = Implementation::nccl});
  CHECK(other.bytes_per_pack == 7);
  CHECK(other.timeout == 1s);
  CHECK(other.implementation == Implementation::nccl);
  CHECK(CommunicationOptions{}.merge(mine).bytes_per_pack == 100);
  CHECK(mine.merge({.timeout = 2s}).bytes_per_pack == 100);
}

TEST_CASE("names of implementations are case-insensitive, unknown ones throw (spec H14)") {
  CHECK(dist::parse_implementation("auto") == Implementation::automatic);
  CHECK(dist::parse_implementation("AUTO") == Implementation::automatic);
  CHECK(dist::parse_implementation("Ring") == Implementation::ring);
  CHECK(dist::parse_implementation("nccl") == Implementation::nccl);
  CHECK_THROWS_WITH_AS(dist::parse_implementation("gloo"),
                       "'gloo' is not an implementation of collectives (the implementations are AUTO, RING and NCCL). "
                       "Use one of these, or AUTO to let the library choose.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(dist::parse_implementation(""), dist::InvalidArgument);
}

TEST_CASE("sizes are unsigned (spec H12)") {
  CHECK(std::is_unsigned_v<decltype(CommunicationOptions::bytes_per_pack)>);
}
