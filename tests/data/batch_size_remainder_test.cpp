#include <dist/data/batch_size.hpp>

#include <doctest/doctest.h>

TEST_CASE("a last batch that is not full is kept unless it is dropped") {
  CHECK(dist::data::Remainder{} == dist::data::Remainder::keep);
  CHECK(dist::data::Remainder{true} == dist::data::Remainder::drop);
}

TEST_CASE("a remainder that is kept is one more group; a number that is not known stays so") {
  using dist::data::Cardinality;
  using dist::data::Remainder;
  using dist::data::detail::groups_of;
  CHECK(groups_of(Cardinality::known(7), 3, Remainder::keep) == Cardinality::known(3));
  CHECK(groups_of(Cardinality::known(7), 3, Remainder::drop) == Cardinality::known(2));
  CHECK(groups_of(Cardinality::known(6), 3, Remainder::keep) == Cardinality::known(2));
  CHECK(groups_of(Cardinality::unknown(), 3, Remainder::keep) == Cardinality::unknown());
  CHECK(groups_of(Cardinality::infinite(), 3, Remainder::drop) == Cardinality::infinite());
}
