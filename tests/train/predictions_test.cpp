#include <dist/train/predictions.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include <doctest/doctest.h>
#include <dist/comm/self.hpp>

using dist::nn::detail::Predictions;

namespace {

struct Replica {
  std::size_t index;
  [[nodiscard]] std::size_t local_index() const { return index; }
};

dist::Tensor<float> rows(std::size_t count, float first) {
  dist::Tensor<float> values{{count, 2}};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("rows are in the order of steps and replicas, with the same bits") {
  Predictions<float> predictions{2};
  const auto put = [&](std::size_t replica, const dist::Tensor<float>& values) {
    predictions.put(Replica{replica}, dist::TensorView<const float>{values});
  };
  put(1, rows(1, 4));
  put(0, rows(2, 0));
  predictions.end_step();
  put(0, rows(1, 6));
  put(1, rows(0, 0));  // the very last batch was too short
  predictions.end_step();
  dist::Tensor<float> odd{{1, 2}};
  odd[0] = -0.0F;
  odd[1] = std::numeric_limits<float>::quiet_NaN();
  put(0, odd);
  put(1, rows(1, 10));
  predictions.end_step();
  const dist::Tensor<float> all = predictions.join(dist::SelfCollectives{});
  REQUIRE(all.shape() == dist::Shape{6, 2});
  for (std::size_t i = 0; i < 8; ++i) CHECK(all[i] == static_cast<float>(i));
  CHECK(std::signbit(all[8]));
  CHECK(std::isnan(all[9]));
  CHECK(all[10] == 10.0F);
}

TEST_CASE("rows that another process computes remain zero here") {
  Predictions<double> predictions{1};
  predictions.leave_out(Replica{0}, 2);
  predictions.end_step();
  dist::Tensor<double> mine{{1}};
  mine[0] = 5;
  predictions.put(Replica{0}, dist::TensorView<const double>{mine});
  predictions.end_step();
  const dist::Tensor<double> all = predictions.join(dist::SelfCollectives{});
  REQUIRE(all.shape() == dist::Shape{3});
  CHECK((all[0] == 0 && all[1] == 0 && all[2] == 5));
}
