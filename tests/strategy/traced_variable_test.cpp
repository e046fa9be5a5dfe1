#include <dist/strategy/traced_variable.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include <dist/hlo/untyped.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <dist/strategy/one_device.hpp>

namespace hlo = dist::hlo;
using dist::Shape;
using dist::Tensor;

namespace {

struct Location {
  std::size_t offset;
  Shape shape;
};
/// Elements 0, 1, 2 and 3 and the last one, of six.
const std::array<Location, 2> parts{Location{0, Shape{2, 2}}, Location{5, Shape{}}};

hlo::Value doubled(hlo::Value x) { return hlo::untyped::add(x, x); }

}  // namespace

TEST_CASE("a step changes parts of a variable, and leaves what is between them") {
  dist::OneDevice<dist::Xla> strategy;
  auto numbers = strategy.variable<float>(Shape{6}, 0.0F);
  const auto scope = strategy.scope();
  numbers.assign(scope, Tensor<float>{{6}, {1, 2, 3, 4, 5, 6}});

  auto in_parts = strategy.compile([&](auto& replica) {
    const std::vector<hlo::Value> before = replica.read_parts(numbers, parts);
    replica.write_parts(numbers, parts, std::array{doubled(before[0]), before[1]});
    return std::tuple{
        replica.read_parts(numbers, parts)[0] == before[0] ? hlo::Traced<float>{1} : hlo::Traced<float>{0},
        numbers.read(replica)};
  });
  const auto [is_same, whole] = in_parts();
  CHECK(is_same == 0);
  CHECK(whole == Tensor<float>{{6}, {2, 4, 6, 8, 0, 6}});  // what the program does not have is 0
  CHECK(numbers.whole(scope) == Tensor<float>{{6}, {2, 4, 6, 8, 5, 6}});

  SUBCASE("a step that uses it whole first may write parts, too") {
    auto whole_first = strategy.compile([&](auto& replica) {
      numbers.assign_add(replica, 1.0F);
      const std::vector<hlo::Value> before = replica.read_parts(numbers, parts);
      replica.write_parts(numbers, parts, std::array{doubled(before[0]), doubled(before[1])});
    });
    whole_first();
    CHECK(numbers.whole(scope) == Tensor<float>{{6}, {6, 10, 14, 18, 6, 14}});
  }
  SUBCASE("a step that uses parts first may write the whole") {
    auto parts_first = strategy.compile([&](auto& replica) {
      static_cast<void>(replica.read_parts(numbers, parts));
      numbers.assign(replica, 7.0F);
    });
    parts_first();
    CHECK(numbers.whole(scope) == Tensor<float>{{6}, {7, 7, 7, 7, 5, 7}});
  }
}
