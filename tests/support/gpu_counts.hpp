/// Counts of GPU work, for tests that run on fake and real GPUs: only fake ones count.
#pragma once

#include <support/fake_cuda/machine.hpp>

namespace support {

#ifdef __CUDACC__
inline constexpr bool gpus_are_counted = false;
[[nodiscard]] inline fake_cuda::Counts gpu_counts() { return {}; }
[[nodiscard]] inline fake_cuda::Live live_on_gpus() { return {}; }
#else
inline constexpr bool gpus_are_counted = true;
[[nodiscard]] inline fake_cuda::Counts gpu_counts() { return fake_cuda::counts(); }
[[nodiscard]] inline fake_cuda::Live live_on_gpus() { return fake_cuda::live(); }
#endif

}  // namespace support
