// optimised
#include <dist/nn/xla.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/tpu.hpp>

#include <conformance/cnn_training.hpp>
#include <support/four_xla_cpus.hpp>

namespace cnn = conformance::cnn;
namespace nn = dist::nn;

namespace {

/// The first steps of the guide's training, in compiled steps.
template <class O>
std::vector<float> losses_of(const O& function) {
  dist::Tpu<> strategy{2};
  nn::Network<cnn::Net, nn::Xla> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, function};
  auto step = strategy.compile([&](auto& replica, const auto& batch) {
    const auto logits = net.forward(replica, batch.x);
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, cnn::global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    return loss;
  });
  std::vector<float> losses;
  for (auto&& batch : strategy.distribute_dataset(cnn::training_set())) {
    losses.push_back(strategy.reduce(dist::sum, step(batch)));
    if (losses.size() == cnn::steps) break;
  }
  return losses;
}

/// Checks agreement with oneDNN on the host: to 1e-5 in the first `steps`, and to `tolerance` in all.
template <class O>
void check(const O& function, std::size_t steps, double tolerance = 1e-5) {
  CAPTURE(O::name);
  const cnn::Run expected = cnn::train(dist::Mirrored<dist::ThreadAllReduce>{2}, function);
  const std::vector<float> losses = losses_of(function);
  REQUIRE(losses.size() == cnn::steps);
  for (std::size_t step = 0; step < cnn::steps; ++step) {
    CAPTURE(step);
    CHECK(losses[step] == doctest::Approx(expected.losses[step]).epsilon(step < steps ? 1e-5 : tolerance).scale(0));
  }
}

}  // namespace

TEST_CASE("the guide's network trains in compiled steps as on the host") {
  check(nn::SGD{.learning_rate = 0.01F}, 20);
  check(nn::Adam{}, 20);
  check(nn::RMSprop{}, 5, 1e-3);
}
