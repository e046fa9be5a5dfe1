// The smallest training loop: two replicas, a small network, SGD.
#include <cstddef>
#include <cstdio>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>

namespace nn = dist::nn;
namespace data = dist::data;

using Net = nn::Sequential<nn::Input<8>, nn::Dense<32, nn::Relu>, nn::Dense<1>>;

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, nn::Reference> net{strategy, /*seed=*/1};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
  dist::Tensor<float> x{{256, 8}}, y{{256, 1}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[8 * i] - x[8 * i + 1];
  auto batches = strategy.distribute_dataset(data::tensor_slices(x, y) | data::batch(32));
  float loss = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& batch : batches)
      loss = strategy.reduce(dist::sum, strategy.run(
                                            [&](auto& replica, const auto& part) {
                                              const auto outputs = net.forward(replica, part.x);
                                              const auto mse = nn::mean_squared_error(replica, outputs, part.y, 32);
                                              net.backward(replica, mse);
                                              optimizer.apply_gradients(replica);
                                              return mse.value();
                                            },
                                            batch));
  std::printf("loss %f\n", static_cast<double>(loss));
}
