#include <dist/hlo/dynamic.hpp>

#include <doctest/doctest.h>

#include <string>

#include <hlo/run.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;

TEST_CASE("an array whose shape the program knows becomes a traced one of that shape, and of no other") {
  const auto doubled = [](auto x) {
    const hlo::Dynamic<float> dynamic{x.value()};
    CHECK(dynamic.shape() == dist::Shape{2, 3});
    CHECK(hlo::Dynamic<float>{x}.value() == x.value());
    CHECK(support::what_throws<dist::ShapeMismatch>([&] {
            static_cast<void>(dynamic.as<hlo::batch, 4>());
          }).find("it is [2, 3], and not [2, 4]") != std::string::npos);
    return 2 * dynamic.as<hlo::batch, 3>();
  };
  using Rows = hlo::Traced<float, hlo::batch, 3>;
  const dist::pjrt::Client client = testing::cpus(1);
  const hlo::Program program{client, hlo::trace<Rows>(1, 2, doubled)};
  const hlo::PerReplica<Rows> x{client, 1, {{2, 3}, {1, 2, 3, 4, 5, 6}}};
  CHECK(program(x).on(0) == dist::Tensor<float>{{2, 3}, {2, 4, 6, 8, 10, 12}});
}
