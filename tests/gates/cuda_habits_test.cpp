// What code for GPUs does not do: it launches kernels by one function, puts work on streams of its own, and waits for
// those, not for a device. The fake GPU would refuse most of it, where it comes by.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "gates/files.hpp"

TEST_CASE("no launch but cudaLaunchKernelEx, no legacy stream, no wait for a device") {
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
  // Memory that is given back waits for whoever uses it; blocks share memory by one function.
  const std::map<std::string, std::string> allowed{{"device/cuda/memory.hpp", "cudaDeviceSynchronize"},
                                                   {"device/cuda/shared.cuh", "__shared__"}};
  for (const auto& [header, text] : headers)
    for (const std::string& habit : habits) {
      const auto exception = allowed.find(header);
      if (exception != allowed.end() && exception->second == habit) continue;
      if (text.find(habit) != std::string::npos) FAIL_CHECK(header << " has " << habit);
    }
}
