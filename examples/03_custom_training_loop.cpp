// A custom training loop. The step is a function of a replica and its batch; the strategy runs it on every replica
// and reduces the gradients.
#include <cstdio>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"

int main() {
  namespace nn = dist::nn;
  namespace data = dist::data;

  // [loop]
  // [step]
  dist::Mirrored<dist::ThreadAllReduce> strategy;  // to use several processes, change this line only
  const std::size_t global_batch = 64 * strategy.num_replicas_in_sync();

  auto train = data::fashion_mnist(data::Split::train) | data::shuffle(60'000, /*seed=*/1) | data::batch(global_batch);

  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten,  //
                             nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, Backend> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::RMSprop{.learning_rate = 1e-3f}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};

  auto step = [&](auto& replica, const auto& batch) {  // runs on every replica, on its part of the batch
    auto logits = net.forward(replica, batch.x);
    auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);  // sum over replicas and update, in one pass
    accuracy.update(replica, logits, batch.y);
    return loss;  // reduce reads the value; nothing waits for a GPU before that
  };
  // [/step]

  float first = 0, last = 0;
  for (auto&& batch : strategy.distribute_dataset(train)) {
    last = strategy.reduce(dist::sum, strategy.run(step, batch));
    if (first == 0) first = last;
  }
  std::printf("loss %.4f -> %.4f, accuracy %.4f\n", first, last, accuracy.result(strategy.scope()));
  // [/loop]

  check(last < first / 2, "the loss falls");
  check(accuracy.result(strategy.scope()) > 0.6, "the network learns");
}
