// The component nvtx gives the header, which is all that there is of NVTX: without a profiler the ranges go nowhere.
#include <dist/device/nvtx.hpp>
#include <dist/dist.hpp>

int main() {
  const dist::NvtxRanges ranges;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) { replica.barrier(); });
  return 0;
}
