// Training and evaluation in one call, like TensorFlow's Estimator. Chief and workers train and save checkpoints, and
// an evaluator process evaluates the newest one. A single process alternates.
//
//   export TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "evaluator", "index": 0}}'
//   ./example_20_train_and_evaluate folder      and likewise for workers 0 and 1 on the two hosts
#include <cstdio>
#include <filesystem>
#include <string>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>
#include <dist/train/callbacks/tensor_board.hpp>
#include <dist/train/train_and_evaluate.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

int main(int argc, char** argv) try {
  namespace nn = dist::nn;
  namespace data = dist::data;
  const std::string folder = argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "dist-example-20").string();
  if (argc == 1) std::filesystem::remove_all(folder);

  // [train_and_evaluate]
  dist::MultiWorker<dist::RingAllReduce> strategy;  // the workers of TF_CONFIG, or a lone evaluator
  auto train = data::fashion_mnist(data::Split::train) | data::take(quick() ? 4'000 : 60'000) |
               data::shuffle(10'000, /*seed=*/1) | data::batch(128);
  auto test = data::fashion_mnist(data::Split::test) | data::take(quick() ? 1'000 : 10'000) | data::batch(128);

  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Flatten, nn::Dense<64, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, Backend> net{strategy};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};

  // [call]
  const auto result = nn::train_and_evaluate(
      model, train, test,
      {.folder = folder + "/checkpoints", .fit = {.epochs = 3, .verbose = 2}, .save_before_preemption = true},
      nn::callbacks::TensorBoard{folder + "/logs"});
  if (result.is_preempted) return 42;  // restart the program to continue
  // [/call]
  if (result.evaluation)
    std::printf("test loss %.4f, accuracy %.4f\n", (*result.evaluation)["loss"], (*result.evaluation)["accuracy"]);
  // [/train_and_evaluate]

  if (!result.history.epochs().empty())
    check(result.history["loss"].back() < result.history["loss"].front(), "the network learns");
  if (result.evaluation) check((*result.evaluation)["accuracy"] > 0.65, "it classifies the test images");
  if (quick() && argc == 1) std::filesystem::remove_all(folder);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
