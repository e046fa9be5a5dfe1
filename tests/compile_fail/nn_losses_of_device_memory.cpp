// expect: outputs, targets and weights must be in the memory that this call reads
// only error
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/regression.hpp>

#ifdef CONTROL
using Elsewhere = dist::HostMemory;
#else
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#endif

int main() {
  const dist::TensorView<float, Elsewhere> outputs;
  float losses[1] = {};
  dist::nn::per_example_losses(dist::nn::MeanSquaredError{}, outputs, outputs, std::span<float>{losses});
}
