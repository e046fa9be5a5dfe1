// GPU code launches kernels by one function, enqueues work on its own streams, and waits for streams, not for devices.
// The fake GPU would reject most exceptions, but only in code that runs.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "gates/files.hpp"

TEST_CASE("GPU code uses no launch except cudaLaunchKernelEx, no legacy stream and no device-wide wait") {
  const auto headers = gates::read_tree(gates::source_dir() / "include/dist", {".hpp", ".ipp", ".cuh"});
  REQUIRE(!headers.empty());
  const std::vector<std::string> habits{"<<<",
                                        "cudaMemcpy(",
                                        "cudaMemset(",
                                        "cudaLaunchKernel(",
                                        "cudaStreamCreate(",
                                        "cudaStreamLegacy",
                                        "cudaStreamPerThread",
                                        "cudaDeviceSynchronize",
                                        "__shared__"};
  // Releasing memory waits for all its users, and one function provides shared memory of blocks.
  const std::map<std::string, std::string> allowed{{"device/cuda/memory.hpp", "cudaDeviceSynchronize"},
                                                   {"device/cuda/shared.cuh", "__shared__"}};
  for (const auto& [header, text] : headers)
    for (const std::string& habit : habits) {
      const auto exception = allowed.find(header);
      if (exception != allowed.end() && exception->second == habit) continue;
      if (text.find(habit) != std::string::npos) FAIL_CHECK(header << " has " << habit);
    }
}
