// nvcc compiles strategies of several processes with GPUs: the host code, and the kernels used with NCCL.
#include <dist/multi_worker.hpp>

#include <cstddef>
#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/comm/nccl/nccl_symmetric_all_reduce.cuh>

struct Descend {
  DIST_HD float operator()(std::size_t, float weight, float slope) const { return weight - slope; }
};

template <class Ops>
void train() {
  dist::MultiWorker<Ops> strategy;
  auto weights = strategy.template variable<float>(dist::Shape{100});
  auto slopes = strategy.template buffer<float>(dist::Shape{100});
  strategy.run([&](auto& replica) {
    replica.all_reduce(dist::max, slopes.component(replica));
    replica.reduce_and_apply(dist::mean, slopes.component(replica), weights.component(replica), Descend{});
  });
}

int main() {
  train<dist::NcclAllReduce>();
  train<dist::NcclSymmetricAllReduce>();
}
