// expect: NCCL supports only dist::sum, dist::mean, dist::min, dist::max and dist::prod: for a bitwise reduction or your own reduction use Mirrored<DirectAllReduce, Cuda>
#include <dist/comm/nccl/reduction.hpp>

int main() {
#ifdef CONTROL
  return dist::nccl::require_reduction<int, dist::Sum>() ? 0 : 1;
#else
  return dist::nccl::require_reduction<int, dist::BitAnd>() ? 0 : 1;
#endif
}
