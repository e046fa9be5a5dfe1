#include <dist/variable/layout.hpp>

#include <doctest/doctest.h>

#include <dist/strategy/default.hpp>

TEST_CASE("a tensor of a variable has the path of its layer") {
  CHECK(dist::VariableTensor{"dense", 0, "kernel", {2, 3}, 0}.name() == "dense/kernel");
  CHECK(dist::VariableTensor{"dense", 2, "bias", {3}, 16}.name() == "dense_2/bias");
  CHECK(dist::VariableTensor{"", 0, "weight", {3}, 16, '.'}.name() == "weight");
}

TEST_CASE("a strategy with local variables makes one variable of all tensors") {
  dist::Default strategy;
  const dist::VariableTensor layout[] = {{"dense", 0, "kernel", {2}, 0}, {"dense", 0, "bias", {1}, 16}};
  const auto variable = dist::detail::variable_of_tensors<float, dist::OnWrite, dist::None>(
      strategy, {32}, [](dist::TensorView<float> all) { all[16] = 3; }, "parameters", layout);
  CHECK(variable.size() == 32);
  CHECK(variable.read(strategy.scope())[16] == 3);
}
