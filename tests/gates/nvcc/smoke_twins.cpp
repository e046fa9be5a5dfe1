// The kernels of smoke.cuh as host functions.
#define DIST_SMOKE_SIDE of_host
#include "smoke.cuh"

#include <support/fake_cuda/twin_of.hpp>

namespace smoke {
namespace {

template <auto... kernels>
constexpr std::array<fake_cuda::Twin, sizeof...(kernels)> twins_of(of_host::Kernels<kernels...>) {
  return {fake_cuda::twin_of<kernels>...};
}

}  // namespace

const std::array<fake_cuda::Twin, kernel_count> twins = twins_of(of_host::All{});

}  // namespace smoke
