// The elements that layers drop do not depend on the number of workers and replicas.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3

#include <cstddef>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

constexpr std::size_t rows = 7;

/// Returns the sum of all gradients of the kernel after two steps over the rows. The last replica gets the remaining
/// rows.
template <class Strategy>
dist::Tensor<float> gradients(Strategy& strategy) {
  using Net = nn::Sequential<nn::Input<5>, nn::Dropout<40>, nn::Dense<2>>;
  nn::Network<Net> net{strategy, 3};
  dist::Tensor<float> x{dist::Shape{rows, 5}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  dist::Tensor<float> result{dist::Shape{5, 2}};
  strategy.run([&](auto& replica) {
    const std::size_t share = rows / replica.num_replicas_in_sync();
    const std::size_t mine = replica.replica_id().index();
    const bool is_last = mine + 1 == replica.num_replicas_in_sync();
    for (int step = 0; step < 2; ++step) {
      const auto y = net.forward(replica, x.view().rows(mine * share, is_last ? rows - mine * share : share));
      for (float& slope : y.gradient.elements()) slope = 1;
      net.backward(replica, 0);
    }
    const auto sum = replica.all_reduce(dist::sum, dist::Tensor<float>{net.template gradient<1, 0>(replica)});
    if (replica.local_index() == 0) result = sum;
  });
  return result;
}

}  // namespace

TEST_CASE("Dropout drops the elements of one replica, on workers in shared memory or over messages") {
  dist::Default alone;
  const auto expected = gradients(alone);
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      dist::MultiWorkerOptions options;
      options.hierarchical = in_memory;
      options.replicas = replicas;
      dist::MultiWorker<dist::MpiAllReduce> strategy{options};
      const auto divided = gradients(strategy);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(divided[i] == doctest::Approx(expected[i]));
    }
}
