// The article's residual network on CIFAR-10 with three strategies, which differ in one type.
//
//   ./example_19_resnet [mirrored|central|workers] [folder with CIFAR-10's binary files]
//
// Without the files it trains on generated pictures. For two processes: mpirun -n 2 ./example_19_resnet workers
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

// [network]
/// Moving averages that adapt faster than with Keras' momentum of 0.99, for short training runs.
struct Follows : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
};
using Normalize = nn::BatchNormalization<nn::PerReplicaStatistics, Follows>;

template <std::size_t Filters, std::size_t Stride>
using Body = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, Stride, nn::Same>, Normalize, nn::ReLU,
                            nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>, Normalize>;
template <std::size_t Filters>
using Projection = nn::Sequential<nn::Conv2D<Filters, 1, nn::Linear, 2>, Normalize>;
template <std::size_t Filters>
using Block = nn::Sequential<nn::Residual<Body<Filters, 1>>, nn::ReLU>;
template <std::size_t Filters>
using Narrower = nn::Sequential<nn::Residual<Body<Filters, 2>, Projection<Filters>>, nn::ReLU>;

template <std::size_t Width>
using ResNet = nn::Sequential<nn::Input<32, 32, 3>, nn::Conv2D<Width, 7, nn::Linear, 2, nn::Same>, Normalize, nn::ReLU,
                              nn::MaxPool2D<3, 2, nn::Same>,  //
                              Block<Width>, Narrower<2 * Width>, Narrower<4 * Width>, Narrower<8 * Width>,
                              nn::GlobalAveragePool2D, nn::Dense<10>>;
// [/network]

/// Generated pictures of ten classes: waves of ten directions, with random phase and noise.
auto drawn(std::size_t count, std::uint64_t seed) {
  dist::Tensor<float> x{{count, 32, 32, 3}};
  dist::Tensor<std::int32_t> y{{count}};
  const dist::RandomStream random{seed};
  std::uint64_t draw = 0;
  for (std::size_t image = 0; image < count; ++image) {
    y[image] = static_cast<std::int32_t>(random.below(10, draw++));
    const float angle = 0.314159F * static_cast<float>(y[image]);
    const float phase = 6.283F * random.uniform(draw++);
    for (std::size_t pixel = 0; pixel < 32 * 32; ++pixel) {
      const auto row = static_cast<float>(pixel / 32);
      const auto column = static_cast<float>(pixel % 32);
      const float wave = std::sin(0.6F * (row * std::sin(angle) + column * std::cos(angle)) + phase);
      for (std::size_t channel = 0; channel < 3; ++channel)
        x[(image * 32 * 32 + pixel) * 3 + channel] = 0.5F + 0.3F * wave + 0.1F * (random.uniform(draw++) - 0.5F);
    }
  }
  return data::tensor_slices(std::move(x), std::move(y));
}

template <std::size_t Width, class S>
double train(S& strategy, const auto& images, const auto& test, std::size_t epochs) {
  const std::size_t batch = 32 * strategy.num_replicas_in_sync();
  nn::Network<ResNet<Width>, Backend> net{strategy, 1};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  if (model.is_chief()) std::printf("%s\n", strategy.describe().c_str());
  model.fit(images | data::shuffle(10'000, 1) | data::batch(batch),
            {.epochs = epochs, .validation = test | data::batch(batch), .verbose = 2});
  return model.evaluate(test | data::batch(batch), {.verbose = 0})["accuracy"];
}

template <std::size_t Width>
double run(std::string_view kind, const auto& images, const auto& test, std::size_t epochs) {
  // [strategies]
  if (kind == "workers") {
    dist::MultiWorker<dist::RingAllReduce> strategy;
    return train<Width>(strategy, images, test, epochs);
  }
  if (kind == "central") {
    dist::CentralStorage<dist::Cpu> strategy{2};
    return train<Width>(strategy, images, test, epochs);
  }
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  return train<Width>(strategy, images, test, epochs);
  // [/strategies]
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr std::size_t width = 64;       // as in the article
  constexpr std::size_t quick_width = 8;  // 60 times fewer operations
  const std::string_view kind = argc > 1 ? argv[1] : "mirrored";
  double accuracy = 0;
  if (argc > 2) {
    accuracy = run<width>(kind, data::cifar10(argv[2], data::Split::train) | data::random_flip(7),
                          data::cifar10(argv[2], data::Split::test), 10);
  } else if (quick()) {
    accuracy = run<quick_width>(kind, drawn(1'024, 1), drawn(256, 2), 4);
  } else {
    accuracy = run<width>(kind, drawn(8'192, 1), drawn(512, 2), 2);
  }
  std::printf("test accuracy: %.4f\n", accuracy);
  check(accuracy > 0.5, "the network distinguishes the classes");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
