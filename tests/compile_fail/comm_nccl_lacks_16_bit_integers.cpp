// expect: NCCL cannot reduce bool or 16-bit integers: use Mirrored<DirectAllReduce, Cuda>, or another element type
#include <dist/comm/nccl/reduction.hpp>

int main() {
#ifdef CONTROL
  return dist::nccl::require_reduction<int, dist::Sum>() ? 0 : 1;
#else
  return dist::nccl::require_reduction<short, dist::Sum>() ? 0 : 1;
#endif
}
