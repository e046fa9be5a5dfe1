// The guide's multi-worker program on Fashion-MNIST. Every process runs this program, and all train one model.
//
//   mpirun -n 2 ./example_10_multi_worker      or one process per machine, with the workers listed in TF_CONFIG
//
// The result does not depend on the number of workers, up to the order of sums: see the input function.
#include <cstdio>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

int main() try {
  namespace nn = dist::nn;
  namespace data = dist::data;

  // [multi_worker]
  dist::MultiWorker<dist::RingAllReduce> strategy;  // create it first: finds the other workers and connects to them
  constexpr std::size_t global_batch = 128;
  const int epochs = 3, steps_per_epoch = quick() ? 20 : 70;

  // Each worker creates its own pipeline. All shuffle with the same seed, so they see the same batches of
  // global_batch / replicas rows, and worker w of W keeps batches w, w + W, w + 2 W and so on. Together, step k
  // processes rows 128 k to 128 k + 127: the batch of a single process.
  // [input]
  const auto train = data::fashion_mnist(data::Split::train) | data::shuffle(60'000, /*seed=*/1) | data::repeat();
  auto batches = strategy.distribute_datasets_from_function([&](const dist::InputContext& context) {
    return train | data::batch(context.get_per_replica_batch_size(global_batch)) |
           data::shard(context.num_input_pipelines(), context.input_pipeline_id()) | data::prefetch(2);
  });
  // [/input]

  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten,  //
                             nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, Backend> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::RMSprop{.learning_rate = 1e-3f}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};

  auto step = [&](auto& replica, const auto& batch) {
    auto logits = net.forward(replica, batch.x);
    auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    accuracy.update(replica, logits, batch.y);
    return loss.value();
  };

  if (strategy.is_chief()) std::printf("%s\n", strategy.describe().c_str());
  float first = 0, train_loss = 0;
  double train_accuracy = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    float total = 0;
    int steps = 0;
    for (auto&& batch : batches) {
      total += strategy.reduce(dist::sum, strategy.run(step, batch));
      if (++steps == steps_per_epoch) break;
    }
    train_loss = total / static_cast<float>(steps);
    train_accuracy = accuracy.result(strategy.scope());  // a collective: every worker calls it
    accuracy.reset(strategy.scope());
    if (epoch == 1) first = train_loss;
    if (strategy.is_chief())  // only the chief prints
      std::printf("Epoch: %d, accuracy: %f, train_loss: %f.\n", epoch, train_accuracy, static_cast<double>(train_loss));
  }
  // [/multi_worker]

  check(train_loss < first / (quick() ? 1.4f : 2), "the loss falls");
  check(train_accuracy > (quick() ? 0.7 : 0.8), "the network learns");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
