#include <dist/strategy/step_results.hpp>

#include <doctest/doctest.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using dist::detail::HostForm;
using dist::detail::is_step_result;

TEST_CASE("results are traced arrays, whose first extent alone may be the rows of a batch, and structures of them") {
  static_assert(is_step_result<void> && is_step_result<hlo::Traced<float>> && is_step_result<hlo::Dynamic<int>>);
  static_assert(is_step_result<std::pair<hlo::Traced<float, hlo::batch, 2>, std::array<hlo::Traced<int>, 2>>>);
  static_assert(!is_step_result<hlo::Traced<float, 2, hlo::batch>> && !is_step_result<std::tuple<float>>);
}

TEST_CASE("the rows of a batch are those that the replica has, in structures as well") {
  using Batch = hlo::Traced<float, hlo::batch, 2>;
  const dist::pjrt::Client client = testing::cpus(1);
  const Tensor<float> padded{{3, 2}, {1, 2, 3, 4, 0, 0}};
  const auto next = [&] { return dist::pjrt::upload(client, 0, padded); };
  CHECK(HostForm<Batch>::of(next, 2) == Tensor<float>{{2, 2}, {1, 2, 3, 4}});
  CHECK(HostForm<hlo::Dynamic<float>>::of(next, 2) == padded);
  const auto [fixed, pair] = HostForm<std::tuple<hlo::Traced<float, 3, 2>, std::array<Batch, 2>>>::of(next, 1);
  CHECK(fixed == padded);
  CHECK(pair[1] == Tensor<float>{{1, 2}, {1, 2}});
}
