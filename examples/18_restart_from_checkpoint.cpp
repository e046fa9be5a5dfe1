// The guide's multi-worker training loop with fault tolerance. After a crash or a preemption signal at any step, a
// restarted run continues from the last checkpoint, and ends with the same bits as an uninterrupted run.
//
//   mpirun -n 2 ./example_18_restart_from_checkpoint checkpoints      repeat until it prints "done"
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include <dist/checkpoint/preemption_handler.hpp>
#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

int main(int argc, char** argv) try {
  namespace nn = dist::nn;
  namespace data = dist::data;

  dist::MultiWorker<dist::RingAllReduce> strategy;
  constexpr std::size_t global_batch = 128;
  const std::uint64_t epochs = quick() ? 2 : 3;
  const std::string folder = argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "dist-example-18").string();

  auto batches =
      strategy.distribute_dataset(data::fashion_mnist(data::Split::train) | data::take(quick() ? 4'000 : 60'000) |
                                  data::shuffle(10'000, /*seed=*/1) | data::batch(global_batch));
  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<16, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                             nn::Dense<64, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, Backend> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::Adam{}};
  auto step = [&](auto& replica, const auto& batch) {
    auto logits = net.forward(replica, batch.x);
    auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    return loss.value();
  };

  // [restart]
  std::uint64_t epoch = 0, step_in_epoch = 0;
  dist::Checkpoint checkpoint{strategy};
  checkpoint.add("network", net).add("optimizer", optimizer);
  checkpoint.add("epoch", epoch).add("step_in_epoch", step_in_epoch);
  dist::CheckpointManager manager{checkpoint, folder, {.max_to_keep = 1}};
  dist::PreemptionHandler preemption{manager};  // restores the latest checkpoint
  if (strategy.is_chief() && preemption.restored())
    std::printf("continues after step %d of epoch %d\n", static_cast<int>(step_in_epoch), static_cast<int>(epoch));

  float loss = 0;
  for (; epoch < epochs; ++epoch, step_in_epoch = 0) {
    auto pass = batches.iterate(epoch);
    pass.seek(step_in_epoch);
    decltype(batches)::Element batch;
    while (pass.next(batch)) {
      loss = strategy.reduce(dist::sum, strategy.run(step, batch));
      if (++step_in_epoch % 8 == 0) manager.save();
      if (preemption.save_if_preempted()) return preemption.exit_code();
    }
    if (strategy.is_chief()) std::printf("epoch %d: loss %.4f\n", static_cast<int>(epoch), static_cast<double>(loss));
  }
  manager.save();
  // [/restart]

  std::uint32_t checksum = 0;
  for (const nn::Parameter& parameter : net.layout()) {
    const auto values = net.parameter(strategy.scope(), parameter.name());
    checksum = dist::io::crc32c(std::as_bytes(std::span{values.data(), values.size()}), checksum);
  }
  if (strategy.is_chief()) std::printf("done: the weights have checksum %08x\n", checksum);
  check(loss < 1.5F, "the network learns");
  if (quick() && argc == 1 && strategy.is_chief()) std::filesystem::remove_all(folder);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
