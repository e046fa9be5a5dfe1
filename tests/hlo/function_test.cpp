#include <dist/hlo/function.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

#include <hlo/arrays.hpp>

namespace hlo = dist::hlo;
using testing::Floats;

TEST_CASE("a traced function is a module with the types of its arguments and results") {
  const int line = __LINE__ + 1;
  const auto function = hlo::trace<Floats<2, 3>, Floats<>>(2, [](auto x, auto rate) { return rate * x; });
  static_assert(std::is_same_v<std::remove_const_t<decltype(function)>,
                               hlo::Function<std::tuple<Floats<2, 3>>(Floats<2, 3>, Floats<>)>>);
  CHECK(function.replicas() == 2);
  CHECK(hlo::without_locations(function.module()) ==
        "module @program attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {\n"
        "func.func @main(%0: tensor<2x3xf32>, %1: tensor<f32>) -> (tensor<2x3xf32>) {\n"
        "%2 = \"stablehlo.broadcast_in_dim\"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> "
        "(tensor<2x3xf32>)\n"
        "%3 = \"stablehlo.multiply\"(%2, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>)\n"
        "\"func.return\"(%3) : (tensor<2x3xf32>) -> ()\n}\n}\n");
  CHECK(function.module().find(dist::concat(" loc(\"program at ", __FILE__, ":", line, "\")\n")) != std::string::npos);
}

TEST_CASE("each donated argument gives its memory to one result of the same type") {
  using A = Floats<2>;
  using B = Floats<3>;
  const auto function =
      hlo::trace<hlo::Donated<A>, B, hlo::Donated<B>, hlo::Donated<A>>(1, [](auto a, auto b, auto c, auto d) {
        return std::tuple{b + c, a, d};
      });
  CHECK(function.module().find("@main(%0: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %1: tensor<3xf32>, "
                               "%2: tensor<3xf32> {tf.aliasing_output = 0 : i32}, "
                               "%3: tensor<2xf32> {tf.aliasing_output = 2 : i32})") != std::string::npos);
}

TEST_CASE("a value that escapes its function is rejected in another one") {
  std::optional<Floats<>> left;
  static_cast<void>(hlo::trace<Floats<>>(1, [&](auto x) {
    left = x;
    return x;
  }));
  CHECK_THROWS_AS(static_cast<void>(hlo::trace<Floats<>>(1, [&](auto x) { return x + *left; })), dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(*left + 1), dist::InvalidArgument);
}
