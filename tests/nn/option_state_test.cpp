#include <dist/nn/option_state.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/slot_update.hpp>

namespace nn = dist::nn;

namespace {

struct Parameters {
  [[nodiscard]] static std::string name() { return "all"; }
  [[nodiscard]] static std::size_t size() { return 64; }
};
struct Network {
  static constexpr std::array<nn::Parameter, 2> list{nn::Parameter{"dense", 0, "kernel", dist::Shape{32}, 0},
                                                     nn::Parameter{"dense", 0, "bias", dist::Shape{32}, 32}};
  static Parameters parameters() { return {}; }
  static std::span<const nn::Parameter> layout() { return list; }
};

struct Functor {
  static constexpr std::array<std::string_view, 0> slots{};
  float decay;
  float scale;
  float operator()(float weight, float gradient, float*) const { return weight - decay - gradient * scale; }
};
using Update = dist::SlotUpdate<Functor, float>;

}  // namespace

TEST_CASE("an optimizer without options has no state, and gradients and updates are not changed") {
  dist::Default strategy;
  Network network;
  nn::OptionState<dist::Default, float, nn::SGD> options{strategy, network, nn::SGD{}};
  float values[64] = {};
  strategy.run([&](auto& replica) {
    const auto gradient = options.accumulated(replica, nn::SGD{}, values);
    REQUIRE(gradient.has_value());
    const auto clipped = options.clipped<true>(replica, nn::SGD{}, *gradient);
    CHECK(clipped.gradients.data() == values);
    CHECK(clipped.scales.empty());
    static_assert(std::is_same_v<decltype(options.applied_to(replica, Update{}, clipped)), Update>);
  });
}

TEST_CASE("calls are accumulated, their mean is clipped, and each parameter has its scale and decay") {
  dist::Default strategy;
  Network network;
  const nn::With function{nn::SGD{}, nn::AccumulateGradients{2}, nn::ClipNorm{1.0F},
                          nn::WeightDecay{.rate = 0.5F, .exclude = {"bias"}}};
  nn::OptionState<dist::Default, float, std::remove_const_t<decltype(function)>> options{strategy, network, function};
  float values[64];
  for (std::size_t i = 0; i < 64; ++i) values[i] = i < 32 ? 2.0F : 0.01F;
  strategy.run([&](auto& replica) {
    CHECK(!options.accumulated(replica, function, values).has_value());
    for (float& value : values) value *= 3;
    const auto mean = options.accumulated(replica, function, values);
    REQUIRE(mean.has_value());
    CHECK((*mean)[0] == 4);
    const auto clipped = options.template clipped<false>(replica, function, *mean);
    const auto update = options.applied_to(replica, Update{{0.25F, 1}, {}}, clipped);
    CHECK(update(0, 1.0F, 4.0F) == doctest::Approx(1 - 0.25 - 4 / (4 * std::sqrt(32.0))));
    CHECK(update(32, 1.0F, 0.5F) == 0.5F);
  });
}
