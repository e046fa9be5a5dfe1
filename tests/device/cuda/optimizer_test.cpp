// Optimizers on GPUs, some with several replicas: bitwise equal to the host with every option. Slots, sums and tables
// are in GPU memory, counters in host memory.
// replicas on GPUs: 1 2 3 4 8
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adadelta.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/nadam.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <support/one_layer.hpp>
#include <support/saved.hpp>

namespace nn = dist::nn;
using support::OneLayer;
using support::Slope;

namespace {

struct Trained {
  std::vector<float> numbers;  // the weights, followed by every slot
  std::int64_t iterations;
  bool operator==(const Trained&) const = default;
};

/// Six steps, without waits of the host in between.
template <class S, class O, class... Option>
Trained train(S& strategy, const O& function, Option... option) {
  OneLayer<S> net{strategy};
  nn::Optimizer optimizer{strategy, net, function};
  strategy.run([&](auto& replica) {
    const auto slopes = net.slopes.component(replica);
    for (std::size_t step = 0; step < 6; ++step) {
      replica.for_each(slopes.size(), Slope{slopes.data(), step + 2 * replica.replica_id().index()});
      optimizer.apply_gradients(replica, option...);
    }
  });
  const auto scope = strategy.scope();
  {  // the saved state outlives the optimizer
    const support::Saved saved{strategy, optimizer};
    OneLayer<S> other{strategy};
    nn::Optimizer restored{strategy, other, function};
    saved.restore(strategy, restored);
    CHECK(support::Saved{strategy, restored} == saved);
  }
  optimizer.finalize(scope);
  Trained trained{{}, optimizer.iterations(scope)};
  const auto add = [&](const auto& tensor) {
    trained.numbers.insert(trained.numbers.end(), tensor.data(), tensor.data() + tensor.size());
  };
  add(net.weights.read(scope));
  for (const auto& slot : optimizer.slots()) add(slot.whole(scope));
  for (std::size_t local = 1; local < strategy.num_local_replicas(); ++local) {
    dist::Tensor<float> copy{{net.size}};
    scope.queue(local).copy(net.weights.component(scope, local), copy.elements());
    scope.queue(local).wait();
    add(copy);
  }
  return trained;
}

template <class... Arguments>
void check_bits(std::size_t replicas, const Arguments&... arguments) {
  dist::Mirrored<dist::ThreadAllReduce, dist::Cpu> host{replicas};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{replicas};
  CHECK(train(gpus, arguments...) == train(host, arguments...));
}

}  // namespace

TEST_CASE("optimizers on GPUs are bitwise equal to the host") {
  const std::size_t replicas = conformance::replicas_of_environment();
  const nn::SGD momentum{.learning_rate = 0.125F, .momentum = 0.5F};
  check_bits(replicas, nn::SGD{});
  check_bits(replicas, nn::Adam{.amsgrad = true});
  check_bits(replicas, nn::RMSprop{});
  check_bits(replicas, nn::Adagrad{});
  check_bits(replicas, nn::Adadelta{.learning_rate = 1});
  check_bits(replicas, nn::Lion{.learning_rate = 0.125F});
  check_bits(replicas, nn::Nadam{});
  check_bits(replicas, nn::With{momentum, nn::AccumulateGradients{3}, nn::ClipNorm{4.0F},
                                nn::AverageWeights{.momentum = 0.75F, .overwrite_frequency = 2},
                                nn::WeightDecay{.rate = 0.25F, .exclude = {"bias"}}});
  check_bits(replicas, nn::With{momentum, nn::GlobalClipNorm{2.0F}});
  check_bits(replicas, nn::With{nn::Adam{}, nn::CosineDecay{.initial_learning_rate = 0.5F, .decay_steps = 5}});
  check_bits(replicas, nn::With{momentum, nn::ClipValue{0.5F}, nn::AverageWeights{.momentum = 0.75F}});
  check_bits(replicas, nn::With{momentum, nn::GlobalClipNorm{2.0F}, nn::AverageWeights{.momentum = 0.75F}},
             nn::skip_aggregation);
}

TEST_CASE("an optimizer of one replica on a GPU is bitwise equal to the host") {
  dist::OneDevice<dist::Cpu> host;
  dist::OneDevice<dist::Cuda> gpu;
  const nn::With decayed{nn::Adam{}, nn::GlobalClipNorm{2.0F}, nn::WeightDecay{.rate = 0.25F}};
  CHECK(train(gpu, decayed) == train(host, decayed));
}

// Inexact norms are added in a different order than on the host.
TEST_CASE("an optimizer with norms on GPUs agrees with the host") {
  const std::size_t replicas = conformance::replicas_of_environment();
  dist::Mirrored<dist::ThreadAllReduce, dist::Cpu> host{replicas};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{replicas};
  const auto compare = [&](const auto& function, auto... option) {
    const Trained on_gpus = train(gpus, function, option...), on_host = train(host, function, option...);
    CHECK(on_gpus.iterations == on_host.iterations);
    REQUIRE(on_gpus.numbers.size() == on_host.numbers.size());
    for (std::size_t i = 0; i < on_host.numbers.size(); ++i)
      CHECK(on_gpus.numbers[i] == doctest::Approx(on_host.numbers[i]).epsilon(1e-5));
  };
  const nn::Lamb lamb{.learning_rate = 0.125F, .epsilon = 0.125F};
  compare(lamb);
  compare(lamb, nn::skip_aggregation);
  compare(nn::With{lamb, nn::AccumulateGradients{3}, nn::ClipNorm{4.0F},
                   nn::AverageWeights{.momentum = 0.75F, .overwrite_frequency = 2},
                   nn::WeightDecay{.rate = 0.25F, .exclude = {"bias"}}});
  compare(nn::With{lamb, nn::GlobalClipNorm{2.0F}});
}
