// expect: outputs, targets and weights must be in the memory that this call reads
// only error
#include <dist/device/cpu.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/regression.hpp>

struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#ifdef CONTROL
using Where = Elsewhere;
#else
using Where = dist::HostMemory;
#endif

int main() {
  const dist::TensorView<float, Where> outputs;
  float losses[1] = {};
  dist::nn::per_example_losses(dist::Cpu::Queue{}, dist::nn::MeanSquaredError{}, outputs, outputs,
                               dist::DeviceSpan<float, Elsewhere>{losses, 1});
}
