#include <dist/device/reuse_memory.hpp>

#include <doctest/doctest.h>

#include <malloc.h>
#include <sys/resource.h>

#include <cstddef>
#include <vector>

namespace {

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace

TEST_CASE("reuse_memory keeps large freed blocks and reuses their pages") {
  const auto mapped = [] {
    const std::vector<std::byte> memory(50 << 20);
    return mallinfo2().hblkhd;
  };
  CHECK(mapped() >= 50 << 20);
  dist::reuse_memory();
  CHECK(mapped() < 50 << 20);
  const long before = page_faults();
  CHECK(mapped() < 50 << 20);
  CHECK(page_faults() - before < 100);
}
