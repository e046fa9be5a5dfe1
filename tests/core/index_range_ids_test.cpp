#include <dist/core/index_range.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>

using dist::Id;
using dist::ReplicaId;

TEST_CASE("an id is a number that starts at zero (spec E01)") {
  static_assert(ReplicaId{}.index() == 0);
  static_assert(ReplicaId{7}.index() == 7);
  static_assert(sizeof(ReplicaId) == sizeof(std::size_t));
  CHECK(ReplicaId{3}.index() == 3);
}

TEST_CASE("ids of one kind compare like their numbers") {
  CHECK(ReplicaId{2} == ReplicaId{2});
  CHECK(ReplicaId{2} != ReplicaId{3});
  CHECK(ReplicaId{2} < ReplicaId{3});
  CHECK(ReplicaId{3} >= ReplicaId{3});
}

TEST_CASE("numbers and ids of other kinds do not convert to an id") {
  using WorkerId = Id<struct WorkerTag>;
  static_assert(!std::convertible_to<std::size_t, ReplicaId>);
  static_assert(!std::convertible_to<ReplicaId, std::size_t>);
  static_assert(!std::constructible_from<ReplicaId, WorkerId>);
  static_assert(!std::equality_comparable_with<ReplicaId, WorkerId>);
  CHECK(WorkerId{1}.index() == ReplicaId{1}.index());
}
