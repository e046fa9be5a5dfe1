#include <dist/data/dataset.hpp>

#include <doctest/doctest.h>

TEST_CASE("a split is train or test") { CHECK(dist::data::Split::train != dist::data::Split::test); }
