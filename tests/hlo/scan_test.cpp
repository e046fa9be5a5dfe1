#include <dist/hlo/scan.hpp>

#include <doctest/doctest.h>

#include <tuple>

#include <dist/hlo/gradients.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using testing::Floats;
using testing::Numbers;

TEST_CASE("gradients of successive parts of a batch add up to the gradient of the whole batch") {
  using Weights = Floats<2>;
  const auto gradient = [](auto x, auto y, Weights w) {
    const auto errors = hlo::contract<1, 0>(x, w) - y;
    return std::get<0>(hlo::gradients(hlo::reduce(dist::sum, errors * errors), std::tuple{w}));
  };
  const dist::pjrt::Client client = testing::cpus(1);
  using X = Floats<3, hlo::batch, 2>;
  using Y = Floats<3, hlo::batch>;
  const hlo::Program program{client, hlo::trace<X, Y, Weights>(1, 2, [&](X x, Y y, Weights w) {
                               const auto [sum, last] = hlo::scan(
                                   [&](auto of_x, auto of_y, auto so_far, auto) {
                                     return std::tuple{so_far + gradient(of_x, of_y, w), hlo::reduce(dist::sum, of_y)};
                                   },
                                   std::tuple{x, y}, Weights{0}, Floats<>{-1});
                               return std::tuple{sum, last};
                             })};
  const auto [sum, last] = program(hlo::PerReplica<X>{client, 1, {{3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}},
                                   hlo::PerReplica<Y>{client, 1, {{3, 2}, {1, 0, 2, 5, 3, 4}}},
                                   hlo::PerReplica<Weights>{client, 1, {{2}, {1, -1}}});
  // The errors are -1 - y; the gradient is twice the sum of errors times x.
  CHECK(sum.on(0) == Numbers{{2},
                             {-2 * (2 * 1 + 1 * 3 + 3 * 5 + 6 * 7 + 4 * 9 + 5 * 11),
                              -2 * (2 * 2 + 1 * 4 + 3 * 6 + 6 * 8 + 4 * 10 + 5 * 12)}});
  CHECK(last.on(0) == Numbers{{}, {7}});
}
