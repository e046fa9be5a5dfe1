#include <dist/data/npy_slices.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/npy_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::data::Cardinality;
using dist::data::npy_slices;
using dist_test::bytes;
using dist_test::npy;
using dist_test::npy_header;
using dist_test::values;

TEST_CASE("npy_slices returns the rows of NPY files as examples (spec I29)") {
  support::TemporaryFolder folder;
  const std::string x = folder.write("x.npy", npy(npy_header("|u1", "(2, 3)"), bytes({1, 2, 3, 4, 5, 6})));
  const std::string y = folder.write("y.npy", npy(npy_header("<i2", "(2,)"), bytes({7, 0, 8, 0})));
  const auto rows = npy_slices<std::uint8_t>(x);
  CHECK(rows.cardinality() == Cardinality::known(2));
  CHECK(values(dist_test::collect(rows).at(1)) == std::vector<std::uint8_t>{4, 5, 6});
  const auto dataset = npy_slices<std::uint8_t, std::int16_t>(x, y);
  const auto examples = dist_test::collect(dataset);
  REQUIRE(examples.size() == 2);
  CHECK(values(examples[0].x) == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(examples[1].y[0] == 8);
}

TEST_CASE("npy_slices rejects scalars, and different numbers of rows, by file name (spec I29)") {
  support::TemporaryFolder folder;
  const std::string two = folder.write("two", npy(npy_header("|u1", "(2,)"), bytes({1, 2})));
  const std::string three = folder.write("three", npy(npy_header("|u1", "(3,)"), bytes({1, 2, 3})));
  const std::string scalar = folder.write("scalar", npy(npy_header("|u1", "()"), bytes({1})));
  const auto refuse = [](const auto& make, const std::string& because) {
    CHECK_THROWS_WITH_AS(static_cast<void>(make()), doctest::Contains(because.c_str()), FileError);
  };
  using Byte = std::uint8_t;
  refuse([&] { return npy_slices<Byte>(scalar); }, "File '" + scalar + "' holds no rows (its array is a scalar)");
  refuse([&] { return npy_slices<Byte, Byte>(two, scalar); }, "File '" + scalar + "' holds no rows");
  refuse([&] { return npy_slices<Byte, Byte>(two, three); },
         "File '" + three + "' does not fit '" + two + "' (3 labels, 2 features)");
  refuse([&] { return npy_slices<float>(two); }, "wanted f32");
  refuse([&] { return npy_slices<Byte>(two, 1); }, "Raise max_elements");
}
