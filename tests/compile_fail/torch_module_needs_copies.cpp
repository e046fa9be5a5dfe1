// expect: a torch_module needs a copy of its tensors on every replica: use dist::Mirrored or dist::MultiWorker
#include <dist/torch/module.hpp>

#include <torch/nn/modules/linear.h>

#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
#ifdef CONTROL
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
#else
  dist::CentralStorage<dist::Cpu> strategy{2};
#endif
  auto net = dist::torch_module(strategy, [] { return torch::nn::Linear{3, 2}; });
}
