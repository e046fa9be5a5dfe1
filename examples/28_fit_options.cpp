// A user-defined loss, metric and callback; options of the optimizer and of fit; a regularizer, class weights and
// 16-bit products.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

constexpr std::size_t rows = 2'000, global_batch = 50;

// [loss]
/// The mean of sqrt(1 + (output - target)^2) - 1 over the outputs of an example.
struct PseudoHuber {
  static constexpr std::string_view name = "pseudo_huber";

  template <class T>
  DIST_HD T element(T output, T target) const {
    return std::sqrt(1 + (output - target) * (output - target)) - 1;
  }
  template <class T>
  DIST_HD T slope(T output, T target) const {  // the derivative with respect to the output
    return (output - target) / std::sqrt(1 + (output - target) * (output - target));
  }
};
// [/loss]

// [metric]
/// The share of examples whose output is within 0.1 of the target.
struct Close {
  static constexpr std::string_view name = "close";
  static constexpr bool more_is_better = true;  // for callbacks that compare epochs
  using Tally = nn::Tally<double, double>;

  template <class Outputs, class Targets>
  DIST_HD double of_row(Outputs outputs, Targets targets) const {
    const auto difference = static_cast<double>(outputs[0]) - static_cast<double>(targets[0]);
    return nn::number_of(difference < 0.1 && difference > -0.1);
  }
};
// [/metric]

/// Points in the plane with a function of both coordinates, and with a class of about one point in eight.
struct Points {
  Points() : x({rows, 2}), y({rows}), is_far({rows}) {
    const dist::RandomStream random{/*seed=*/11};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 2 * random.uniform(i) - 1;
    for (std::size_t i = 0; i < rows; ++i) {
      y[i] = std::sin(2 * x[2 * i]) * x[2 * i + 1];
      is_far[i] = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1] > 1.1F ? 1 : 0;
    }
  }
  dist::Tensor<float> x, y;
  dist::Tensor<std::int32_t> is_far;
};

}  // namespace

int main() {
  const Points points;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};

  // [model]
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<32, nn::Tanh>, nn::Dense<1>>;
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  const nn::WarmUp schedule{50, nn::CosineDecay{.initial_learning_rate = 1e-2F, .decay_steps = 1'000}};
  const nn::With adam{nn::Adam{}, nn::GlobalClipNorm{1.0F}, nn::WeightDecay{.rate = 1e-3F, .exclude = {"bias"}},
                      schedule};
  const nn::Regularized regularized{PseudoHuber{}, nn::L2{1e-6F}};
  nn::Model model{strategy, net, adam, regularized, Close{}, nn::MeanOf{nn::MeanAbsoluteError{}}};
  // [/model]

  // [fit]
  nn::callbacks::EarlyStopping stopping{{.monitor = "val_close", .patience = 10, .restore_best_weights = true}};
  auto print = nn::callbacks::lambda<nn::hooks::on_epoch_end>([](const nn::Epoch& epoch, nn::Logs& logs) {
    if (epoch.index % 10 == 0) std::printf("epoch %zu: loss %.4f\n", epoch.index + 1, logs["loss"]);
  });
  const nn::History history =
      model.fit(points.x, points.y, {.epochs = 40, .verbose = 0, .batch_size = global_batch, .validation_split = 0.2},
                stopping, print);
  const dist::Tensor<float> outputs = model.predict(points.x, {.verbose = 0});  // [rows, 1], in the order of the rows
  // [/fit]
  std::printf("%zu epochs, close %.3f\n", history.epochs().size(), history["val_close"].back());
  check(outputs.rows() == rows, "there is an output for each row");
  check(history["val_close"].back() > 0.8, "the network learns the function");

  using Mixed = nn::MixedPrecision<Backend, dist::BFloat16>;  // products of 16-bit factors
  using Classifier = nn::Sequential<nn::Input<2>, nn::Dense<16, nn::Relu>, nn::Dense<2>>;
  nn::Network<Classifier, Mixed> classifier{strategy, /*seed=*/1};
  nn::Model rare{strategy,
                 classifier,
                 nn::Adam{.learning_rate = 1e-2F},
                 nn::SparseCategoricalCrossentropy{},
                 nn::SparseCategoricalAccuracy{},
                 nn::Weighted{nn::SparseCategoricalAccuracy{.name = "weighted"}}};
  rare.fit(points.x, points.is_far, {.epochs = 10, .class_weight = {1, 7}, .verbose = 0});
  const nn::Logs logs = rare.evaluate(points.x, points.is_far, {.verbose = 0});
  std::printf("accuracy of the classifier %.3f\n", logs["accuracy"]);
  check(logs["accuracy"] > 0.9, "the classifier finds the rare class");

  nn::Network<Net, Backend> other{strategy, /*seed=*/2};
  nn::Optimizer optimizer{strategy, other, nn::Adam{.learning_rate = 1e-2F}};
  const auto batches = data::tensor_slices(points.x, points.y) | data::batch(global_batch);
  // [loop]
  auto step = [&](auto& replica, const auto& batch) {
    auto outputs_of_batch = other.forward(replica, batch.x);
    auto loss = nn::compute_loss(PseudoHuber{}, replica, outputs_of_batch, batch.y, global_batch);
    other.backward(replica, loss);
    const float penalty = nn::regularization_loss(replica, other, nn::L2{1e-6F});  // adds its gradient, too
    optimizer.apply_gradients(replica);
    return loss.value() + penalty;
  };
  // [/loop]
  float first = 0, last = 0;
  auto distributed = strategy.distribute_dataset(batches);
  for (int epoch = 0; epoch < 5; ++epoch)
    for (auto&& batch : distributed) {
      last = strategy.reduce(dist::sum, strategy.run(step, batch));
      if (first == 0) first = last;
    }
  check(last < first / 2, "the loss of the loop falls");
}
