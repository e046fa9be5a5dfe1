#include <dist/nn/layers/group_normalization.hpp>

#include <string>

#include <dist/core/static_shape.hpp>
#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// A back end that writes down what it is asked.
struct Recorder {
  using Device = dist::Cpu;
  using State = std::string;
  struct Kernel {
    void forward(State& calls, auto, auto, auto, double epsilon, auto) {
      calls += epsilon == 0.5 ? "forward " : "forward with another epsilon ";
    }
    void backward(State& calls, auto, auto, auto, auto, auto, dist::TensorView<float> dx) {
      calls += "backward ";
      calls += dx.data() == nullptr ? "without dx" : "with dx";
    }
  };
};
struct Half {
  static constexpr double epsilon = 0.5;
};

}  // namespace

TEST_CASE("the gradient of the input is computed where one is needed") {
  nn::detail::GroupNormalizationOperation<Recorder, Recorder::Kernel, Half, float> operation;
  float memory[1] = {};
  const dist::TensorView<float> any{memory, dist::Shape{1}};
  std::string calls;
  operation.forward(calls, any, {any, any}, any);
  operation.backward<true>(calls, any, {any, any}, any, any, {any, any}, any);
  CHECK(calls == "forward backward with dx");
  calls.clear();
  operation.backward<false>(calls, any, {any, any}, any, any, {any, any}, any);
  CHECK(calls == "backward without dx");
}

TEST_CASE("groups of channels, over the pixels or not") {
  using Image = dist::StaticShape<3, 4, 6>;
  CHECK(nn::detail::GroupGeometry<Image, 2, true>::pixels == 12);
  CHECK(nn::detail::GroupGeometry<Image, 1, false>::pixels == 1);
  CHECK(nn::detail::GroupGeometry<Image, 1, false>::channels == 6);
}
