#include <dist/variable/policies.hpp>

#include <type_traits>

#include <doctest/doctest.h>

namespace {
struct Other {};
struct FromOnRead : dist::OnRead {};
struct FromSum : dist::Sum {};
}  // namespace

TEST_CASE("Synchronization accepts only OnWrite and OnRead (spec G01)") {
  static_assert(dist::Synchronization<dist::OnWrite> && dist::Synchronization<dist::OnRead>);
  static_assert(!dist::Synchronization<dist::None>);
  static_assert(!dist::Synchronization<dist::Sum>);
  static_assert(!dist::Synchronization<Other>);
  static_assert(!dist::Synchronization<FromOnRead>);
  static_assert(!dist::Synchronization<const dist::OnRead>);
  CHECK(std::is_empty_v<dist::OnWrite>);
  CHECK(std::is_empty_v<dist::OnRead>);
}

TEST_CASE("synchronization Auto is OnWrite (spec G01)") {
  static_assert(dist::Synchronization<dist::Auto>);
  CHECK(std::is_same_v<dist::Auto, dist::OnWrite>);
}

TEST_CASE("policies have names for messages") {
  CHECK(dist::OnWrite::name == "OnWrite");
  CHECK(dist::OnRead::name == "OnRead");
  CHECK(dist::None::name == "None");
  CHECK(dist::OnlyFirstReplica::name == "OnlyFirstReplica");
}

TEST_CASE("Aggregation accepts only None, Sum, Mean and OnlyFirstReplica (spec G02)") {
  static_assert(dist::Aggregation<dist::None> && dist::Aggregation<dist::Sum> && dist::Aggregation<dist::Mean> &&
                dist::Aggregation<dist::OnlyFirstReplica>);
  static_assert(!dist::Aggregation<dist::Max>);
  static_assert(!dist::Aggregation<dist::OnRead>);
  static_assert(!dist::Aggregation<Other>);
  static_assert(!dist::Aggregation<FromSum>);
  static_assert(!dist::Aggregation<dist::Sum&>);
  CHECK(std::is_empty_v<dist::None>);
  CHECK(std::is_empty_v<dist::OnlyFirstReplica>);
}
