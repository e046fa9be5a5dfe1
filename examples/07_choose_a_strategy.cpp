// Changes the strategy by changing one type. One training function gives equal losses with five strategies, with
// stored gradients and without.
#include <cmath>
#include <concepts>
#include <cstdio>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

constexpr std::size_t global_batch = 48;

/// Points in the plane, labelled by quadrant.
auto quadrants() {
  const dist::RandomStream random{11};
  const std::size_t points = 20 * global_batch;
  dist::Tensor<float> x{dist::Shape{points, 2}};
  dist::Tensor<std::int32_t> y{dist::Shape{points}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.normal(i);
  for (std::size_t i = 0; i < points; ++i) y[i] = (x[2 * i] > 0 ? 1 : 0) + (x[2 * i + 1] > 0 ? 2 : 0);
  return data::tensor_slices(std::move(x), std::move(y)) | data::batch(global_batch);
}

// [train]
template <class Gradients = nn::StoredGradients, dist::Strategy S>
std::vector<float> train(S& strategy) {
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<16, nn::Relu>, nn::Dense<4>>;
  nn::Network<Net, Backend, float, Gradients> net{strategy, /*seed=*/5};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 1e-2f}};

  std::vector<float> losses;
  for (auto&& batch : strategy.distribute_dataset(quadrants())) {
    const auto parts = strategy.run(
        [&](auto& replica, const auto& part) {
          auto logits = net.forward(replica, part.x);
          auto loss = nn::sparse_categorical_crossentropy(replica, logits, part.y, global_batch);
          net.backward(replica, loss);
          optimizer.apply_gradients(replica);
          return loss.value();
        },
        batch);
    losses.push_back(strategy.reduce(dist::sum, parts));
  }
  return losses;
}
// [/train]

}  // namespace

int main() {
  // [strategies]
  dist::Default none;
  dist::OneDevice<dist::Cpu> one;
  dist::Mirrored<dist::ThreadAllReduce> mirrored{2};
  dist::Mirrored<dist::RingAllReduce> ring{3};
  dist::CentralStorage<dist::Cpu> central{4};
  // [/strategies]
  const auto expected = train(none);
  std::printf("%-72s loss %.4f -> %.4f\n", none.describe().c_str(), expected.front(), expected.back());
  check(expected.back() < 0.6f * expected.front(), "the network learns the quadrants");

  const auto compare = [&]<class Gradients = nn::StoredGradients>(auto& strategy, Gradients = {}) {
    const auto losses = train<Gradients>(strategy);
    constexpr bool stored = std::same_as<Gradients, nn::StoredGradients>;
    std::printf("%-72s loss %.4f -> %.4f%s\n", strategy.describe().c_str(), losses.front(), losses.back(),
                stored ? "" : ", without stored gradients");
    check(losses.size() == expected.size(), "the strategies take the same number of steps");
    for (std::size_t i = 0; i < losses.size(); ++i)
      check(std::abs(losses[i] - expected[i]) <= 1e-5f * expected[i], "the strategies agree on every loss");
  };
  compare(one);
  compare(mirrored);
  compare(ring);
  compare(central);
  // The gradients of large dense layers need not be stored. The template argument is usually the batch per replica.
  // It is 1 here, because this network is too small for larger values.
  compare(mirrored, nn::OwnerComputedGradients<1>{});
  compare(central, nn::OwnerComputedGradients<1>{});
}
