// The residual network of the article for images of 224 x 224 pixels, under five strategies. The strategy is one type.
//
//   ./example_19_resnet [mirrored|central|workers|servers|tpu] [folder with CIFAR-10's binary files]
//
// Without the files it trains on generated pictures. For two processes: mpirun -n 2 ./example_19_resnet workers
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/coordinator/local_job.hpp>
#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"
#include "tpu.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

// [network]
/// Moving averages that adapt faster than with Keras' momentum of 0.99, for short training runs.
struct Follows : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
};
/// Statistics of the global batch, so that any number of replicas trains alike.
using Normalize = nn::BatchNormalization<nn::SynchronizedStatistics, Follows>;

template <std::size_t Filters, std::size_t Stride>
using Body = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, Stride, nn::Same>, Normalize, nn::ReLU,
                            nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>, Normalize>;
template <std::size_t Filters>
using Projection = nn::Sequential<nn::Conv2D<Filters, 1, nn::Linear, 2>, Normalize>;
template <std::size_t Filters>
using Block = nn::Sequential<nn::Residual<Body<Filters, 1>>, nn::ReLU>;
template <std::size_t Filters>
using Narrower = nn::Sequential<nn::Residual<Body<Filters, 2>, Projection<Filters>>, nn::ReLU>;

template <std::size_t Width, std::size_t Side>
using ResNet = nn::Sequential<nn::Input<Side, Side, 3>, nn::Conv2D<Width, 7, nn::Linear, 2, nn::Same>, Normalize,
                              nn::ReLU, nn::MaxPool2D<3, 2, nn::Same>, Block<Width>, Block<Width>, Narrower<2 * Width>,
                              Narrower<4 * Width>, Narrower<8 * Width>, nn::GlobalAveragePool2D, nn::Dense<10>>;
// [/network]

using Article = ResNet<64, 224>;  // 6.7 GFLOP per image and training step
using Small = ResNet<8, 64>;      // 800 times fewer

/// The losses of the first steps in the short form, computed by tests/nn/resnet_losses.py with PyTorch.
template <class Net>
constexpr std::array first_losses{2.48222648};
template <>
constexpr std::array first_losses<Small>{2.43835901, 2.76115911, 2.08878594};

std::string folder;  // of CIFAR-10

/// Generated pictures of ten classes: waves of ten directions, with noise.
auto drawn(std::size_t first, std::size_t count) {
  dist::Tensor<float> x{{count, 32, 32, 3}};
  dist::Tensor<std::int32_t> y{{count}};
  const dist::RandomStream random{/*seed=*/3};
  for (std::size_t image = 0; image < count; ++image) {
    y[image] = static_cast<std::int32_t>((first + image) * 7 % 10);
    const double angle = 0.314159 * (y[image] + 0.5);
    for (std::size_t k = 0; k < 32 * 32 * 3; ++k) {
      const auto row = static_cast<double>(k / 96);
      const auto column = static_cast<double>(k / 3 % 32);
      const auto phase = static_cast<double>(first + image + k % 3);
      const double wave = std::sin(0.6 * (row * std::sin(angle) + column * std::cos(angle)) + phase);
      const double noise = random.uniform<double>((first + image) * 32 * 32 * 3 + k) - 0.5;
      x[image * 32 * 32 * 3 + k] = static_cast<float>(0.5 + 0.3 * wave + 0.4 * noise);
    }
  }
  return data::tensor_slices(std::move(x), std::move(y));
}

/// Batches of images that are as large as the input of the network, without end.
template <class Net>
auto batches(data::Split split, std::uint64_t seed = 0) {
  const bool trains = split == data::Split::train;
  auto images = folder.empty() ? drawn(trains ? 0 : 1'000, trains ? 1'000 : 200) : data::cifar10(folder, split);
  constexpr std::size_t side = Net::InputShape::template extent<0>;
  const std::size_t batch = !quick() ? 32 : std::is_same_v<Net, Small> ? 8 : 2;
  return std::move(images) | data::shuffle(quick() ? 1 : 10'000, seed) |  // a buffer of 1 keeps the order
         data::resize_images(side, side) | data::batch(batch) | data::repeat();
}

/// Trains and evaluates the network. `input` is the first argument of `fit`.
template <class Net, class Layers = Backend>
void train(auto& strategy, const auto& input) {
  nn::Network<Net, Layers> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::SGD{.learning_rate = 0.02F, .momentum = 0.9F}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseCategoricalAccuracy{}};
  if (model.is_chief()) std::printf("%s\n", strategy.describe().c_str());
  if (quick()) {
    constexpr auto& expected = first_losses<Net>;
    const nn::History first = model.fit(input, {.epochs = expected.size(), .steps_per_epoch = 1, .verbose = 0});
    for (std::size_t step = 0; step < expected.size(); ++step)
      check(std::abs(first["loss"][step] - expected[step]) < 1e-4, "the first losses are PyTorch's");
    if (!std::is_same_v<Net, Small>) return;
  }
  const std::size_t epochs = folder.empty() ? 2 : 10;
  const std::size_t steps = quick() ? 20 : folder.empty() ? 100 : 1'500;
  model.fit(input, {.epochs = epochs, .steps_per_epoch = steps, .verbose = 2});
  const nn::Logs test = model.evaluate(batches<Net>(data::Split::test), {.verbose = 0, .steps = 6});
  if (model.is_chief()) std::printf("test accuracy: %.4f\n", test["accuracy"]);
  check(test["accuracy"] > 0.5, "the network distinguishes the classes");
}

template <class Net>
void run(std::string_view kind) {
  const auto images = batches<Net>(data::Split::train);
  // [strategies]
  if (kind == "workers") {
    dist::MultiWorker<dist::RingAllReduce> strategy;
    train<Net>(strategy, images);
  } else if (kind == "central") {
    dist::CentralStorage<dist::Cpu> strategy{2};
    train<Net>(strategy, images);
    // [servers]
  } else if (kind == "servers") {
    const dist::LocalJob job{/*parameter_servers=*/2, /*workers=*/quick() ? 1U : 2U};
    dist::ParameterServer<dist::Local> strategy{job.resolver()};
    train<Net>(strategy, [](const dist::InputContext& worker) {  // each worker reads in another order
      return batches<Net>(data::Split::train, worker.input_pipeline_id());
    });
    // [/servers]
  } else if (kind == "tpu") {
    with_tpu([&]<class Layers>(auto& strategy) { train<Net, Layers>(strategy, images); });
  } else {
    dist::Mirrored<dist::ThreadAllReduce> strategy{2};
    train<Net>(strategy, images);
  }
  // [/strategies]
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view kind = argc > 1 ? argv[1] : "mirrored";
  if (argc > 2) folder = argv[2];
  if (quick()) run<Small>(kind);
  if (!quick() || kind == "mirrored") run<Article>(kind);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
