// The training loop of example 03 on TPUs or other PJRT devices. The step is the same; the strategy, the backend and
// the compiled step differ. For CPUs, set DIST_PJRT_PLUGIN to XLA's plugin, and the number of devices with
// DIST_PJRT_VALUES=cpu_device_count=2.
#include <cstdio>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/xla.hpp>
#include <dist/tpu.hpp>
#include <dist/train.hpp>

#include "check.hpp"

int main() {
  namespace nn = dist::nn;
  namespace data = dist::data;

  // [loop]
  dist::Tpu<> strategy;  // one replica per device of the plugin
  const std::size_t global_batch = 64 * strategy.num_replicas_in_sync();

  auto train = data::fashion_mnist(data::Split::train) | data::shuffle(60'000, /*seed=*/1) | data::batch(global_batch);

  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten,  //
                             nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, nn::Xla> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::RMSprop{.learning_rate = 1e-3f}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};

  auto step = [&](auto& replica, const auto& batch) {  // called once, with traced arrays
    auto logits = net.forward(replica, batch.x);
    auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    accuracy.update(replica, logits, batch.y);
    return loss;
  };
  auto train_step = strategy.compile(step);

  float first = 0, last = 0;
  for (auto&& batch : strategy.distribute_dataset(train)) {
    last = strategy.reduce(dist::sum, train_step(batch));
    if (first == 0) first = last;
  }
  std::printf("loss %.4f -> %.4f, accuracy %.4f\n", first, last, accuracy.result(strategy.scope()));
  // [/loop]

  // [fit]
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  const nn::History history = model.fit(train, {.epochs = 1, .verbose = 2});
  // [/fit]

  check(last < first / 2, "the loss falls");
  check(accuracy.result(strategy.scope()) > 0.6, "the network learns");
  check(history["accuracy"].back() > accuracy.result(strategy.scope()), "the model continues from the trained weights");
}
