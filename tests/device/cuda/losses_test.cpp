// Losses of outputs on GPUs: values and gradients equal the host's, with and without weights.
// replicas on GPUs: 1
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/strategy/one_device.hpp>
#include <support/on_host.hpp>

namespace nn = dist::nn;

namespace {

constexpr std::size_t rows = 7, outputs_of_row = 5;

template <class S, class T>
struct Outputs {
  dist::TensorView<const T, typename S::Device::Space> values;
  dist::TensorView<T, typename S::Device::Space> gradient;
};

/// The loss, followed by its gradient.
template <class Target, class S, class L, class... Weights>
std::vector<float> computed(S& strategy, const L& loss, bool are_probabilities, const Weights&... weight) {
  const auto make = [&]<class T>(dist::Shape shape, T, auto value_of) {
    dist::Tensor<T> given{shape};
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<T>(value_of(i));
    auto buffer = strategy.template buffer<T>(shape, "given");
    strategy.run([&](auto& replica) {
      replica.queue().copy(std::as_const(given).elements(), buffer.component(replica));
      replica.queue().wait();
    });
    return buffer;
  };
  const auto logit = [](std::size_t i) { return 3 * std::sin(1.7 * static_cast<double>(i)); };
  const auto probability = [](std::size_t i) { return static_cast<double>(1 + i * 3 % 8) / 16; };
  const auto values = make(dist::Shape{rows, outputs_of_row}, 0.0F,
                           [&](std::size_t i) { return are_probabilities ? probability(i) : logit(i); });
  const auto targets =
      make(std::integral<Target> ? dist::Shape{rows} : dist::Shape{rows, outputs_of_row}, Target{}, [](std::size_t i) {
        return std::integral<Target> ? static_cast<double>(i % outputs_of_row) : static_cast<double>(i % 3) / 2;
      });
  const auto weights = make(dist::Shape{rows}, 0.0F, [](std::size_t i) { return 0.5 * static_cast<double>(i); });
  const auto gradient = make(dist::Shape{rows, outputs_of_row}, 0.0F, [](std::size_t) { return 9; });

  std::vector<float> all;
  strategy.run([&](auto& replica) {
    using Space = typename S::Device::Space;
    const auto view = [&](const auto& buffer) {
      const auto elements = buffer.component(replica);
      return dist::TensorView<std::remove_pointer_t<decltype(elements.data())>, Space>{elements.data(), buffer.shape()};
    };
    const Outputs<S, float> outputs{view(values), view(gradient)};
    const auto result = [&] {
      if constexpr (sizeof...(weight) > 0)
        return nn::compute_loss(loss, replica, outputs, view(targets), rows, view(weights));
      else
        return nn::compute_loss(loss, replica, outputs, view(targets), rows);
    }();
    all.push_back(result.value());
    for (const float slope : support::on_host(replica.queue(), gradient.component(replica))) all.push_back(slope);
  });
  return all;
}

template <class Target = float, class L>
void compare(const L& loss, bool are_probabilities = false) {
  CAPTURE(L::name);
  dist::OneDevice<dist::Cpu> host;
  dist::OneDevice<dist::Cuda> gpu;
  const auto check = [](const std::vector<float>& found, const std::vector<float>& expected) {
    REQUIRE(found.size() == 1 + rows * outputs_of_row);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  };
  check(computed<Target>(gpu, loss, are_probabilities), computed<Target>(host, loss, are_probabilities));
  check(computed<Target>(gpu, loss, are_probabilities, true), computed<Target>(host, loss, are_probabilities, true));
}

}  // namespace

TEST_CASE("losses and gradients on a GPU equal the host's") {
  compare<std::int32_t>(nn::SparseCategoricalCrossentropy{});
  compare<std::int32_t>(nn::SparseCategoricalCrossentropy{.ignore_class = 3});
  compare<std::uint8_t>(nn::SparseCategoricalCrossentropy{.from_logits = false, .label_smoothing = 0.125F}, true);
  compare(nn::CategoricalCrossentropy{.label_smoothing = 0.125F});
  compare(nn::CategoricalCrossentropy{.from_logits = false}, true);
  compare(nn::BinaryCrossentropy{.label_smoothing = 0.125F});
  compare(nn::BinaryCrossentropy{.from_logits = false}, true);
  compare(nn::MeanSquaredError{});
  compare(nn::MeanAbsoluteError{});
  compare(nn::Huber{.delta = 0.5F});
  compare(nn::Hinge{});
  compare(nn::LogCosh{});
  compare(nn::Poisson{}, true);
  compare(nn::MeanSquaredLogarithmicError{});
  compare(nn::KlDivergence{}, true);
  compare(nn::CosineSimilarity{});
}
