// The main program of tests on the GPUs of this machine. Without a GPU it is skipped, or fails if DIST_REQUIRE_GPU=1. A
// test that needs a number of GPUs (DIST_TEST_NEEDS_GPUS=2) sees only that many of the visible ones, and is skipped if
// there are fewer.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/device/cuda/visible.hpp>
#include <support/needs_gpu.hpp>

namespace {

/// Returns the number of GPUs that the test needs; 0 for any number.
[[nodiscard]] std::size_t needed_gpus() {
  const char* const needed = std::getenv("DIST_TEST_NEEDS_GPUS");
  return needed == nullptr ? 0 : std::stoul(needed);
}

/// Returns the first entries of CUDA_VISIBLE_DEVICES, or the first GPUs of the machine if it is not set.
[[nodiscard]] std::string first_entries(std::size_t count, const char* variable) {
  std::string first;
  const auto add = [&](const auto& entry) { first += dist::concat(first.empty() ? "" : ",", entry); };
  if (variable == nullptr) {
    for (std::size_t device = 0; device < count; ++device) add(device);
  } else {
    auto entries = dist::cuda::detail::entries_of(variable);
    entries.resize(std::min(count, entries.size()));
    for (const std::string_view entry : entries) add(entry);
  }
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t needed = needed_gpus();
  // CUDA reads the variable at its first call.
  if (needed != 0) setenv("CUDA_VISIBLE_DEVICES", first_entries(needed, dist::cuda::visible_variable()).c_str(), 1);
  const testing::NeedsGpu gpu_is_there;
  const std::size_t count = dist::Cuda::count();
  const std::string seen = dist::cuda::visible_devices(count, dist::cuda::visible_variable());
  if (count < needed) {
    std::printf("skipped: the test needs %zu GPUs, and %s\n", needed, seen.c_str());
    return testing::skipped;
  }
  std::printf("%s\n", seen.c_str());
  std::fflush(stdout);
  return doctest::Context{argc, argv}.run();
}
