// Model.fit with parameter servers: workers train the guide's network without waiting for each other. Servers and
// workers are threads of this process, or with "ps" tasks in TF_CONFIG processes that communicate by gRPC.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <dist/cluster.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                           nn::Dense<64, nn::Relu>, nn::Dense<10>>;

constexpr std::size_t batch = 64;
std::size_t images() { return quick() ? 6'400 : 60'000; }

template <class T, class Resolver>
void train(const Resolver& resolver) {
  // [model]
  dist::ParameterServer<T> strategy{resolver, {.partitioner = dist::MinSizeShards{.max_shards = 2}}};
  std::printf("%s\n", strategy.describe().c_str());

  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  // [/model]
  // [fit]
  // Each worker creates its own dataset with its own order, and starts over at the end.
  const auto examples = [](const dist::InputContext& worker) {
    return data::fashion_mnist(data::Split::train) | data::take(images()) |
           data::shuffle(10'000, worker.input_pipeline_id()) | data::batch(batch);
  };
  model.fit(examples, {.epochs = 2, .steps_per_epoch = images() / batch});
  // [/fit]
  auto test = data::fashion_mnist(data::Split::test) | data::batch(batch);
  const nn::Logs logs = model.evaluate(test, {.verbose = 0});
  std::printf("test accuracy: %.4f\n", logs["accuracy"]);
  check(logs["accuracy"] >= (quick() ? 0.6 : 0.8), "asynchronous steps train the network");
}

}  // namespace

int main() try {
  if (std::getenv("TF_CONFIG") != nullptr) {
    const dist::TfConfigResolver resolver;
    if (dist::serve<dist::Grpc>(resolver)) return 0;  // in servers and workers, after the coordinator has finished
    train<dist::Grpc>(resolver);
  } else {
    const dist::LocalJob job{/*parameter_servers=*/2, /*workers=*/2};
    train<dist::Local>(job.resolver());
  }
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
