// Model.fit as in the guide's tutorial: a learning-rate schedule, TensorBoard, checkpoints and a user-defined
// callback. Then a new model restores the newest checkpoint, and the weights are loaded with and without a strategy.
//
//   ./example_17_fit_with_callbacks [folder [seed]]
//
// The seed determines the initial weights and the order of images.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <dist/checkpoint/folder.hpp>
#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>
#include <dist/train/callbacks/tensor_board.hpp>
#include <dist/train/model_files.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                           nn::Dense<64, nn::Relu>, nn::Dense<10>>;

// [callback]
/// A callback is any class with at least one hook. A hook can take the model as its first parameter.
struct PrintLearningRate {
  void on_epoch_end(auto& model, const nn::Epoch& epoch, const nn::Logs&) {
    std::printf("Learning rate for epoch %zu is %g\n", epoch.index + 1,
                static_cast<double>(model.optimizer().learning_rate()));
  }
};
// [/callback]

auto examples(data::Split split) { return data::fashion_mnist(split) | data::take(quick() ? 2'000 : 60'000); }

/// Evaluates the saved weights under another strategy.
template <class S>
nn::Logs evaluate_saved(S& strategy, const std::string& weights, const auto& test) {
  nn::Network<Net, Backend> net{strategy};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  model.load_weights(weights);
  return model.evaluate(test, {.verbose = 0});
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "dist-example-17").string();
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::filesystem::remove_all(folder);

  // [fit]
  dist::Mirrored<dist::ThreadAllReduce> strategy;  // one replica per core
  const std::size_t batch = 64 * strategy.num_replicas_in_sync();
  auto train = examples(data::Split::train) | data::shuffle(10'000, seed) | data::batch(batch);
  auto test = examples(data::Split::test) | data::batch(batch);

  nn::Network<Net, Backend> net{strategy, seed};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  std::printf("%s", model.summary().c_str());

  // [callbacks]
  model.fit(train, {.epochs = quick() ? 2U : 12U}, nn::callbacks::TensorBoard{folder + "/logs"},
            nn::callbacks::ModelCheckpoint{folder + "/training/ckpt_{epoch}"},
            nn::callbacks::LearningRateScheduler{[](std::size_t epoch) {
              return epoch < 3 ? 1e-3F : epoch < 7 ? 1e-4F : 1e-5F;
            }},
            PrintLearningRate{});
  // [/callbacks]
  // [/fit]
  const nn::Logs trained = model.evaluate(test, {.verbose = 0});

  // [restore]
  nn::Network<Net, Backend> other_net{strategy, seed + 1};
  nn::Model other{strategy, other_net, nn::Adam{}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseCategoricalAccuracy{}};
  other.load(*dist::latest_checkpoint(folder + "/training"));
  const nn::Logs restored = other.evaluate(test, {.verbose = 0});
  // [/restore]
  std::printf("test loss %.4f, accuracy %.4f; restored: %.4f, %.4f\n", trained["loss"], trained["accuracy"],
              restored["loss"], restored["accuracy"]);

  const std::string weights = folder + "/network.safetensors";
  model.save_weights(weights);
  dist::Mirrored<dist::ThreadAllReduce> same{strategy.num_replicas_in_sync()};
  dist::Default none;
  const nn::Logs with_strategy = evaluate_saved(same, weights, test);
  const nn::Logs without = evaluate_saved(none, weights, test);
  std::printf("loaded with a strategy: %.4f, %.4f; without: %.4f, %.4f\n", with_strategy["loss"],
              with_strategy["accuracy"], without["loss"], without["accuracy"]);
  std::printf("tensorboard --logdir %s/logs shows the curves\n", folder.c_str());

  const auto shown = [](double value) { return dist::concat(static_cast<std::int64_t>(value * 1e4 + 0.5)); };
  check(restored["loss"] == trained["loss"] && restored["accuracy"] == trained["accuracy"],
        "the restored model evaluates to the same bits");
  check(with_strategy["loss"] == trained["loss"],
        "the loaded weights give the same loss with the same number of replicas");
  check(shown(without["loss"]) == shown(trained["loss"]) && without["accuracy"] == trained["accuracy"],
        "the loaded weights give the same printed digits without a strategy");
  check(trained["accuracy"] >= (quick() ? 0.60 : 0.90), "the network classifies the test images");
  if (quick()) std::filesystem::remove_all(folder);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
