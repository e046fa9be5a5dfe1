#include <dist/data/dataset.hpp>

#include <doctest/doctest.h>

TEST_CASE("a dataset has two parts") { CHECK(dist::data::Split::train != dist::data::Split::test); }
