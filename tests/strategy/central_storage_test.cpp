#include <dist/strategy/central_storage.hpp>

#include <doctest/doctest.h>
#include <conformance/strategy.hpp>
#include <conformance/strategy_methods.hpp>

#include <cstddef>
#include <span>
#include <string>

using conformance::Make;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>,
                               Make<Central, 8>);
TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>,
                               Make<Central, 8>);

TEST_CASE("all replicas share one copy of a variable (spec A18, G40)") {
  Central strategy{3};
  auto variable = strategy.variable<float>({1000}, 2.0f, "weights");
  const auto places = strategy.run([&](auto& replica) { return variable.component(replica).data(); });
  for (const float* place : places) CHECK(place == variable.component(strategy.scope(), 0).data());
  CHECK(strategy.memory_on<dist::Cpu>()->replicas() == 1);
  CHECK(strategy.replica_memory_on<dist::Cpu>()->replicas() == 3);
}

TEST_CASE("reduce_and_apply changes the one copy, with a share per replica") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{8}}) {
    Central strategy{replicas};
    auto weights = strategy.variable<float>({5000}, 1.0f, "weights");
    const auto gradients = strategy.buffer<float>({5000}, "gradients");
    strategy.run([&](auto& replica) {
      for (float& gradient : gradients.component(replica)) gradient = static_cast<float>(replica.local_index() + 1);
      replica.reduce_and_apply(dist::sum, gradients.component(replica), weights.component(replica),
                               [](std::size_t, float weight, float reduced) { return weight - reduced; });
    });
    const auto expected = 1.0f - static_cast<float>(replicas * (replicas + 1) / 2);
    std::size_t wrong = 0;
    for (const float weight : weights.component(strategy.scope(), 0)) wrong += weight != expected;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a strategy describes its replicas and the location of variables") {
  const std::string device = dist::Cpu::device_name(dist::Cpu::placement(1)[0]);
  CHECK(Central{1}.describe() == "CentralStorage<Cpu>: 1 replica on " + device + ", one copy of every variable");
}
