#include <dist/nn/regularizer.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/central_storage.hpp>

namespace nn = dist::nn;

static_assert(nn::Regularizer<nn::L1> && nn::Regularizer<nn::L2> && nn::Regularizer<nn::L1L2>);

namespace {

struct NoSlope {
  [[nodiscard]] float term(float) const { return 0; }
};
struct NoTerm {
  [[nodiscard]] float slope(float) const { return 0; }
};
struct OtherType {
  [[nodiscard]] double term(float) const { return 0; }
  [[nodiscard]] float slope(float) const { return 0; }
};
struct Least {
  [[nodiscard]] float term(float) const { return 0; }
  [[nodiscard]] float slope(float) const { return 0; }
};
static_assert(nn::Regularizer<Least>);
static_assert(!nn::Regularizer<NoSlope> && !nn::Regularizer<NoTerm> && !nn::Regularizer<OtherType>);

using Net = nn::Sequential<nn::Input<3>, nn::Dense<4>, nn::Dense<2>>;

template <class S>
void compare(std::unique_ptr<S> owner) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  nn::Network<Net, nn::Reference, double> net{strategy, 5};
  const auto weights = net.parameters().read(strategy.scope());
  double squares = 0;
  double absolutes = 0;
  for (const nn::Parameter& parameter : net.layout())
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i) {
      const double weight = weights[parameter.offset + i];
      if (parameter.kind == "kernel") squares += weight * weight;
      absolutes += std::fabs(weight);
    }
  const double factor{0.125f};
  const auto penalties = strategy.run([&](auto& replica) {
    const std::span<double> gradients = net.gradients().component(replica);
    for (double& gradient : gradients) gradient = 1;
    return nn::regularization_loss(replica, net, nn::L2{0.125f});
  });
  CHECK(strategy.reduce(dist::sum, penalties) == doctest::Approx(factor * squares));
  const double replicas = static_cast<double>(strategy.num_replicas_in_sync());
  strategy.run([&](auto& replica) {
    CHECK(nn::total_regularization(replica, net, nn::L2{0.125f}) == doctest::Approx(factor * squares));
    const auto gradients = net.gradients().component(replica);
    for (const nn::Parameter& parameter : net.layout())
      for (std::size_t i = parameter.offset; i < parameter.offset + parameter.shape.elements(); ++i) {
        const double slope = parameter.kind == "kernel" ? 2 * factor * weights[i] / replicas : 0;
        CHECK(gradients[i] == doctest::Approx(1 + slope));
      }
  });
  const auto all_values = strategy.run([&](auto& replica) {
    return nn::regularization_loss(replica, net, nn::L1{0.5f}, [](const nn::Parameter&) { return true; });
  });
  CHECK(strategy.reduce(dist::sum, all_values) == doctest::Approx(0.5 * absolutes));
}

}  // namespace

TEST_CASE("terms and slopes agree with Keras") {
  CHECK(nn::L1{0.5f}.term(-3.0) == 1.5);
  CHECK(nn::L1{0.5f}.slope(-3.0) == -0.5);
  CHECK(nn::L1{0.5f}.slope(0.0) == 0.0);
  CHECK(nn::L2{0.5f}.term(-3.0) == 4.5);
  CHECK(nn::L2{0.5f}.slope(-3.0) == -3.0);
  const nn::L1L2 both{.l1 = 0.5f, .l2 = 0.25f};
  CHECK(both.term(2.0) == 2.0);
  CHECK(both.slope(-2.0) == -1.5);
  CHECK(nn::L1{}.factor == 0.01f);
  CHECK(nn::L2{}.factor == 0.01f);
}

TEST_CASE("the slope of L1 is 0 at 0, and NaN at NaN") {
  CHECK(nn::L1{0.5F}.slope(0.0) == 0);
  CHECK(std::isnan(nn::L1{0.5F}.slope(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("KernelsOnly selects all kernels of a layer, and no bias") {
  using Attending = nn::Sequential<nn::Input<3, 4>, nn::MultiHeadAttention<2, 2>>;
  std::size_t kernels = 0;
  for (const nn::Parameter& parameter : Attending::parameters)
    if (nn::KernelsOnly{}(parameter)) {
      CHECK(parameter.name().ends_with("/kernel"));
      ++kernels;
    }
  CHECK(kernels == 4);
}

TEST_CASE("each replica has 1 / R of the regularisation loss and of its gradient (spec P03, P05)") {
  compare(std::make_unique<dist::Default>());
  compare(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    compare(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas));
    compare(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas));
  }
}
