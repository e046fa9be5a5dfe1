#include <dist/train/batch_parts.hpp>

#include <array>
#include <tuple>
#include <utility>

#include <doctest/doctest.h>

using dist::nn::detail::parts_of_batch;

TEST_CASE("parts are members x and y, what std::get takes apart, or the whole where features are enough") {
  struct Batch {
    int x;
    double y;
    int id;
  };
  const Batch batch{3, 0.5, 7};
  CHECK(parts_of_batch<2>(batch) == std::tuple{3, 0.5});
  CHECK(&std::get<0>(parts_of_batch<2>(batch)) == &batch.x);  // nothing is copied
  const std::pair pair{4, 1.5};
  CHECK(parts_of_batch<2>(pair) == std::tuple{4, 1.5});
  CHECK(&std::get<1>(parts_of_batch<2>(pair)) == &pair.second);
  CHECK(parts_of_batch<2>(std::tuple{5, 2.5, 'w'}) == std::tuple{5, 2.5, 'w'});
  CHECK(parts_of_batch<2>(std::array{6, 7}) == std::tuple{6, 7});
  CHECK(parts_of_batch<1>(std::tuple{8}) == std::tuple{8});
  const int features = 9;
  CHECK(parts_of_batch<1>(features) == std::tuple{9});
}
