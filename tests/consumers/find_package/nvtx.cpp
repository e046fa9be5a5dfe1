// The component nvtx provides the header; NVTX has no library. Without a profiler, ranges have no effect.
#include <dist/device/nvtx.hpp>
#include <dist/dist.hpp>

int main() {
  const dist::NvtxRanges ranges;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) { replica.barrier(); });
  return 0;
}
