// Replicas on GPUs. Without a GPU, prints the error message, and succeeds.
// [program]
#include <cstdio>

#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/dist.hpp>

struct Square {  // runs on the GPU: trivially copyable, with pointers to device memory
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] *= values[i]; }
};

int main() {
  try {
    dist::Mirrored<dist::DirectAllReduce, dist::Cuda> strategy{2};
    auto values = strategy.variable<float, dist::OnWrite, dist::Sum>(dist::Shape{1000}, 3.0f, "values");
    strategy.run([&](auto& replica) {
      const auto mine = values.component(replica);  // this replica's copy, in the memory of its GPU
      replica.for_each(dist::IndexRange{0, mine.size()}, Square{mine.data()});
      replica.all_reduce(dist::sum, mine);
    });
    const float squares = values.read(strategy.scope())[999];  // a copy in the host's memory
    std::printf("%g\n", static_cast<double>(squares));
    return squares == 18 ? 0 : 1;
  } catch (const dist::NoGpu& error) {
    std::puts(error.what());
    return 0;
  }
}
// [/program]
