#include <dist/nn/optimizers/optimizer_function.hpp>

#include <array>
#include <cstdint>
#include <string_view>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Step {
  [[maybe_unused]] static constexpr std::array<std::string_view, 0> slots{};
  float operator()(float weight, float gradient, float*) const { return weight - gradient; }
};
struct Minimal {
  static constexpr std::string_view name = "Minimal";
  float learning_rate = 1;
  void check() const {}
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    apply(Step{});
  }
};
struct Nameless : Minimal {
  static constexpr int name = 7;
};
struct WithoutRate : Minimal {
  double learning_rate = 1;
};
struct WithoutUpdate {
  static constexpr std::string_view name = "WithoutUpdate";
  float learning_rate = 1;
  void check() const {}
};

}  // namespace

TEST_CASE("an optimizer's arithmetic has a name, a learning rate, a check and an update") {
  CHECK(nn::OptimizerFunction<Minimal>);
  CHECK_FALSE(nn::OptimizerFunction<Nameless>);
  CHECK_FALSE(nn::OptimizerFunction<WithoutRate>);
  CHECK_FALSE(nn::OptimizerFunction<WithoutUpdate>);
  CHECK_FALSE(nn::OptimizerFunction<int>);
  Minimal{}.with_update<float>(1, nn::detail::IgnoreUpdate{});
}
