#include <dist/data/remainder.hpp>

#include <doctest/doctest.h>

TEST_CASE("a last batch that is not full is kept unless it is dropped") {
  CHECK(dist::data::Remainder{} == dist::data::Remainder::keep);
  CHECK(dist::data::Remainder{true} == dist::data::Remainder::drop);
}
