#include <dist/data/batch_size.hpp>

#include <doctest/doctest.h>

TEST_CASE("Remainder keeps a partial last batch by default") {
  CHECK(dist::data::Remainder{} == dist::data::Remainder::keep);
  CHECK(dist::data::Remainder{true} == dist::data::Remainder::drop);
}

TEST_CASE("groups_of counts a kept remainder as a group, and keeps unknown numbers unknown") {
  using dist::data::Cardinality;
  using dist::data::Remainder;
  using dist::data::detail::groups_of;
  CHECK(groups_of(Cardinality::known(7), 3, Remainder::keep) == Cardinality::known(3));
  CHECK(groups_of(Cardinality::known(7), 3, Remainder::drop) == Cardinality::known(2));
  CHECK(groups_of(Cardinality::known(6), 3, Remainder::keep) == Cardinality::known(2));
  CHECK(groups_of(Cardinality::unknown(), 3, Remainder::keep) == Cardinality::unknown());
  CHECK(groups_of(Cardinality::infinite(), 3, Remainder::drop) == Cardinality::infinite());
}
