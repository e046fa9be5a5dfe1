#define DIST_DISPATCH_VECTORS 1
#include <dist/core/vectors.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <support/spawned.hpp>

#include <doctest/doctest.h>

namespace {

/// The bytes of the vectors that a body is compiled for.
std::size_t chosen_width() {
  std::size_t width = 0;
  dist::detail::with_widest_vectors([&]<std::size_t Bytes>() DIST_INLINE_LAMBDA { width = Bytes; });
  return width;
}

}  // namespace

TEST_CASE("a process with limited vectors" * doctest::skip()) {
  const char* const variable = std::getenv("DIST_MAX_ISA");
  if (variable == nullptr) return;
  const std::string_view name = variable;
  if (name == "sve") {
    CHECK_THROWS_WITH_AS(chosen_width(),
                         "DIST_MAX_ISA is not the name of an instruction set (it is 'sve'). Set it to sse41, avx2 or "
                         "avx512, or unset it.",
                         dist::InvalidArgument);
    return;
  }
  const std::size_t allowed = name == "sse41" ? 16 : name == "avx2" ? 32 : 64;
  if (dist::detail::vector_bytes > allowed) {
    CHECK_THROWS_AS(chosen_width(), dist::InvalidArgument);
    return;
  }
  CHECK(chosen_width() <= allowed);
#ifdef DIST_DISPATCHES_VECTORS
  if (allowed == 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) CHECK(chosen_width() == 32);
#endif
}

TEST_CASE("DIST_MAX_ISA limits the vectors") {
  for (const char* const name : {"sse41", "avx2", "avx512", "sve"}) {
    CAPTURE(name);
    support::Spawned process{"a process with limited vectors", {std::string{"DIST_MAX_ISA="} + name}};
    CHECK(process.exit_status_within(std::chrono::seconds{120}) == 0);
  }
}

TEST_CASE("the body is called once, with the vector width of the processor") {
  std::size_t calls = 0;
  std::size_t width = 0;
  float sums[37];
  dist::detail::with_widest_vectors([&]<std::size_t Bytes>() DIST_INLINE_LAMBDA {
    ++calls;
    width = Bytes;
    for (std::size_t i = 0; i < std::size(sums); ++i) sums[i] = static_cast<float>(i) + 0.5f;
  });
  CHECK(calls == 1);
  CHECK(width >= dist::detail::vector_bytes);
  CHECK((width == 16 || width == 32 || width == 64));
#ifdef DIST_DISPATCHES_VECTORS
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    CHECK(width == 64);
  else if (__builtin_cpu_supports("avx2"))
    CHECK(width >= 32);
#endif
  for (std::size_t i = 0; i < std::size(sums); ++i) CHECK(sums[i] == static_cast<float>(i) + 0.5f);
}

TEST_CASE_TEMPLATE("lanes are indexed like an array", T, bool, std::int8_t, std::uint64_t, float, double, long double) {
  dist::detail::Lanes<T, 8> lanes;
  static_assert(sizeof(lanes) == 8 * sizeof(T));
  for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] = static_cast<T>(lane % 2);
  for (std::size_t lane = 0; lane < 8; ++lane) CHECK(static_cast<T>(lanes[lane]) == static_cast<T>(lane % 2));
}
