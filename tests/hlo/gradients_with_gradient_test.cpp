#include <dist/hlo/gradients.hpp>

#include <doctest/doctest.h>

#include <tuple>

#include <dist/hlo/operations.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using Row = hlo::Traced<float, 3>;
using testing::Numbers;

TEST_CASE("an explicit gradient replaces the gradient of a function's operations") {
  const auto [values, slopes] = testing::run<Row>(
      1,
      [](Row x) {
        const Row y = hlo::with_gradient(hlo::max(x, 0), x, [=](Row of_y) { return hlo::select(x > 0, of_y, 0); });
        return std::tuple_cat(std::tuple{y}, hlo::gradients(hlo::reduce(dist::sum, y * y + y * 5), std::tuple{x}));
      },
      Numbers{{3}, {-2, 0, 3}});
  CHECK(values == Numbers{{3}, {0, 0, 3}});
  CHECK(slopes == Numbers{{3}, {0, 0, 11}});
}
