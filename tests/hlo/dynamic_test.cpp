#include <dist/hlo/dynamic.hpp>

#include <doctest/doctest.h>

#include <string>

#include <hlo/run.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;

TEST_CASE("an array whose shape is known when traced converts to a Traced of exactly this shape") {
  const auto doubled = [](auto x) {
    const hlo::Dynamic<float> dynamic{x.value()};
    CHECK(dynamic.shape() == dist::Shape{2, 3});
    CHECK(hlo::Dynamic<float>{x}.value() == x.value());
    CHECK(support::what_throws<dist::ShapeMismatch>([&] {
            static_cast<void>(dynamic.as<hlo::batch, 4>());
          }).find("it is [2, 3], not [2, 4]") != std::string::npos);
    return 2 * dynamic.as<hlo::batch, 3>();
  };
  using Rows = hlo::Traced<float, hlo::batch, 3>;
  const dist::pjrt::Client client = testing::cpus(1);
  const hlo::Program program{client, hlo::trace<Rows>(1, 2, doubled)};
  const hlo::PerReplica<Rows> x{client, 1, {{2, 3}, {1, 2, 3, 4, 5, 6}}};
  CHECK(program(x).on(0) == dist::Tensor<float>{{2, 3}, {2, 4, 6, 8, 10, 12}});
}

TEST_CASE("Dynamic arrays support arithmetic with each other and with numbers") {
  using X = hlo::Traced<float, 2, 2>;
  const auto compute = [](X x) {
    const hlo::Dynamic<float> a = x;
    const hlo::Dynamic<float> larger = max(a * 2.0F - a, 0.5F);
    const auto chosen = select((a > 1.0F) & (a != 4.0F), a, hlo::Dynamic<float>{0});
    return std::tuple{larger.as<2, 2>(), chosen.as<2, 2>(), a.as<double>().sum().as<>()};
  };
  const auto [larger, chosen, total] = testing::run<X>(1, compute, dist::Tensor<float>{{2, 2}, {-1, 2, 3, 4}});
  CHECK(larger == dist::Tensor<float>{{2, 2}, {0.5F, 2, 3, 4}});
  CHECK(chosen == dist::Tensor<float>{{2, 2}, {0, 2, 3, 0}});
  CHECK(total[0] == 8);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(hlo::trace<X, hlo::Traced<float, 3>>(1, [](X x, hlo::Traced<float, 3> y) {
            return (hlo::Dynamic<float>{x} + hlo::Dynamic<float>{y}).as<2, 2>();
          }));
        }).find("Arrays of a program do not fit together (one is [2, 2], the other [3])") == 0);
}
