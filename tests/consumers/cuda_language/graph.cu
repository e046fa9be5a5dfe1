// A step of all replicas as one CUDA graph. Without a GPU, the error says what to do.
#include <cstdio>

#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/dist.hpp>
#include <dist/strategy/step_graph.hpp>

struct Halve {
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] /= 2; }
};

int main() {
  try {
    dist::Mirrored<dist::DirectAllReduce, dist::Cuda> strategy{2};
    auto values = strategy.variable<float, dist::OnWrite, dist::Sum>(dist::Shape{1000}, 18.0f, "values");
    const auto step = [&](auto& replica) {
      replica.for_each(dist::IndexRange{0, 1000}, Halve{values.component(replica).data()});
      replica.all_reduce(dist::sum, values.component(replica));
    };
    // [graph]
    strategy.run(step);  // the first step allocates memory, which a captured step cannot
    dist::StepGraph graph{strategy};
    for (int i = 0; i < 100; ++i) graph.run(step);  // all kernels of all replicas: one launch
    // [/graph]
    const float unchanged = values.read(strategy.scope())[999];  // two replicas add two halves
    std::printf("%g, %zu graphs instantiated\n", static_cast<double>(unchanged), graph.instantiations());
    return unchanged == 18 ? 0 : 1;
  } catch (const dist::NoGpu& error) {
    std::puts(error.what());
    return 0;
  }
}
