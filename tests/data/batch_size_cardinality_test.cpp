#include <dist/data/batch_size.hpp>

#include <doctest/doctest.h>

using dist::data::Cardinality;

TEST_CASE("a cardinality is a number, infinite or unknown") {
  constexpr Cardinality seven = Cardinality::known(7);
  static_assert(seven.is_known() && !seven.is_infinite() && seven.count() == 7);
  static_assert(!Cardinality::infinite().is_known() && Cardinality::infinite().is_infinite());
  static_assert(!Cardinality::unknown().is_known() && !Cardinality::unknown().is_infinite());
  CHECK(seven == Cardinality::known(7));
  CHECK(seven != Cardinality::known(8));
  CHECK(Cardinality::known(0) != Cardinality::unknown());
  CHECK(Cardinality::infinite() != Cardinality::unknown());
}
