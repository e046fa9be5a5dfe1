// Strategies of several processes with GPUs: what the host compiles, and the kernels beside NCCL.
#include <dist/multi_worker.hpp>

#include <cstddef>
#include <dist/comm/nccl/nccl_all_reduce.cuh>

struct Descend {
  DIST_HD float operator()(std::size_t, float weight, float slope) const { return weight - slope; }
};

int main() {
  dist::MultiWorker<dist::NcclAllReduce> strategy;
  auto weights = strategy.variable<float>(dist::Shape{100});
  auto slopes = strategy.buffer<float>(dist::Shape{100});
  strategy.run([&](auto& replica) {
    replica.all_reduce(dist::max, slopes.component(replica));
    replica.reduce_and_apply(dist::mean, slopes.component(replica), weights.component(replica), Descend{});
  });
}
