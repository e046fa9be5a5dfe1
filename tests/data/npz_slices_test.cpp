#include <dist/data/npz_slices.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/numpy_files.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::data::npz_slices;
using dist_test::values;

TEST_CASE("npz_slices returns the rows of arrays in one NPZ file as examples (spec I29)") {
  support::TemporaryFolder folder;
  const std::string path = folder.write("data.npz", dist_test::numpy_savez_compressed);
  const auto features = npz_slices<float>(path, "x_train");
  CHECK(values(dist_test::collect(features).at(1)) == std::vector<float>{3, 4, 5});
  const auto dataset = npz_slices<float, std::int64_t>(path, "x_train", "y_train");
  const auto examples = dist_test::collect(dataset);
  REQUIRE(examples.size() == 2);
  CHECK(values(examples[0].x) == std::vector<float>{0, 1, 2});
  CHECK(examples[1].y[0] == -8);
}

TEST_CASE("npz_slices rejects a missing array by name (spec I29)") {
  support::TemporaryFolder folder;
  const std::string path = folder.write("data.npz", dist_test::numpy_savez);
  CHECK_THROWS_WITH_AS(static_cast<void>(npz_slices<float, float>(path, "x_train", "y")),
                       doctest::Contains("has no array 'y' (it holds 'x_train', 'y_train')"), FileError);
  CHECK_THROWS_WITH_AS(static_cast<void>(npz_slices<float>(path, "y_train")),
                       doctest::Contains((path + ":y_train.npy' has elements of another type").c_str()), FileError);
}
