// Replicas on GPUs; where there is no GPU, the error says what to do.
#include <cstdio>

#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/dist.hpp>

struct Square {
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] *= values[i]; }
};

int main() {
  try {
    dist::Mirrored<dist::DirectAllReduce, dist::Cuda> strategy{2};
    auto values = strategy.variable<float, dist::OnWrite, dist::Sum>(dist::Shape{1000}, 3.0f, "values");
    strategy.run([&](auto& replica) {
      replica.for_each(dist::IndexRange{0, 1000}, Square{values.component(replica).data()});
      replica.all_reduce(dist::sum, values.component(replica));
    });
    const float squares = values.read(strategy.scope())[999];
    std::printf("%g\n", static_cast<double>(squares));
    return squares == 18 ? 0 : 1;
  } catch (const dist::NoGpu& error) {
    std::puts(error.what());
    return 0;
  }
}
