// The machine's limits for two cores that share only memory: multiply-adds, copies, and a barrier.
//
//   bench_limits [--json FILE]   all limits
//   bench_limits --gate          only the multiply-adds of one core and of both; fails if another program uses a core
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "support/aligned_memory.hpp"
#include "support/collective_timing.hpp"
#include "support/machine.hpp"
#include "support/two_cores.hpp"

namespace {

constexpr std::size_t copied = std::size_t{64} << 20;  // bytes per core
constexpr std::size_t floats = copied / sizeof(float);

void copy_cached(float* to, const float* from) {
  using Vector = float __attribute__((vector_size(64), may_alias));
  for (std::size_t i = 0; i < floats; i += 16)
    *reinterpret_cast<Vector*>(to + i) = *reinterpret_cast<const Vector*>(from + i);
}

/// Uses streaming stores, which bypass the caches, if the processor has them.
void copy_streaming(float* to, const float* from) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < floats; i += 16) _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
  _mm_sfence();
#elif defined(__AVX__)
  for (std::size_t i = 0; i < floats; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
#elif defined(__x86_64__)
  for (std::size_t i = 0; i < floats; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
  _mm_sfence();
#else
  std::memcpy(to, from, copied);
#endif
}

/// Seconds of a call of `work(thread)` on both cores at once: the slower core's time, median over `calls`.
template <class Work>
double joint_time(int calls, const Work& work) {
  bench::BareBarrier barrier;
  std::vector<double> times[2];
  bench::on_two_cores([&](int thread) {
    auto local = work(thread);
    for (int call = 0; call < calls; ++call) {
      barrier(thread);
      const double start = bench::seconds();
      local();
      times[thread].push_back(bench::seconds() - start);
    }
  });
  std::vector<double> slower;
  for (std::size_t call = 0; call < times[0].size(); ++call) slower.push_back(std::max(times[0][call], times[1][call]));
  return bench::median(std::move(slower));
}

template <class Copy>
double copy_bandwidth(const Copy& copy) {
  const double time = joint_time(15, [&](int) {
    struct Arrays {
      bench::AlignedMemory<float> from{floats}, to{floats};
      Arrays() { std::fill_n(from.data(), floats, 1.0f); }  // memory that was never written would be one page of zeros
    };
    return [&copy, arrays = std::make_unique<Arrays>()] { copy(arrays->to.data(), arrays->from.data()); };
  });
  return 2 * 2 * static_cast<double>(copied) / time;
}

double barrier_time() {
  bench::BareBarrier barrier;
  constexpr int barriers = 20000;
  return joint_time(15,
                    [&](int thread) {
                      return [&barrier, thread] {
                        for (int i = 0; i < barriers; ++i) barrier(thread);
                      };
                    }) /
         barriers;
}

struct Rates {
  double one, both;
};

Rates fma_rates() {
  constexpr double duration = 0.02;
  double rates[2];
  bench::on_two_cores([&](int thread) { rates[thread] = bench::fma_rate(duration); });
  double alone = 0;
  bench::on_two_cores([&](int thread) {
    if (thread == 0) alone = bench::fma_rate(duration);
  });
  return {alone, rates[0] + rates[1]};
}

int gate() {
  const Rates fma = fma_rates();
  const bool quiet = bench::is_quiet(fma.one, fma.both);
  std::printf("multiply-adds: one core %.1f GFLOP/s, both %.1f (%.2f times): %s\n", 1e-9 * fma.one, 1e-9 * fma.both,
              fma.both / fma.one, quiet ? "quiet" : "busy");
  return quiet ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view flag = argc > 1 ? argv[1] : "";
  if (argc == 2 && flag == "--gate") return gate();
  if (argc != 1 && !(argc == 3 && flag == "--json")) {
    const bool asked = argc == 2 && (flag == "--help" || flag == "-h");
    std::fprintf(asked ? stdout : stderr,
                 "usage: bench_limits [--json FILE | --gate]\n"
                 "Prints the limits of this machine. --gate only checks that it is quiet, and sets the exit status.\n");
    return asked ? 0 : 2;
  }
  const Rates fma = fma_rates();
  const double cached = copy_bandwidth(copy_cached);
  const double streaming = copy_bandwidth(copy_streaming);
  const double barrier = barrier_time();
  std::printf("multiply-adds, one core          %8.1f GFLOP/s\n", 1e-9 * fma.one);
  std::printf("multiply-adds, both cores        %8.1f GFLOP/s\n", 1e-9 * fma.both);
  std::printf("copy by both cores, 64 MiB each  %8.1f GB/s read and written\n", 1e-9 * cached);
  std::printf("  with streaming stores          %8.1f GB/s read and written\n", 1e-9 * streaming);
  std::printf("barrier of two threads           %8.1f ns\n", 1e9 * barrier);
  if (argc == 1) return 0;
  std::FILE* json = std::fopen(argv[2], "w");
  if (json == nullptr) {
    std::fprintf(stderr, "Cannot write %s\n", argv[2]);
    return 1;
  }
  std::fprintf(json,
               "{\"fma_one_gflops\": %.6g, \"fma_both_gflops\": %.6g, \"copy_gbs\": %.6g, "
               "\"copy_streaming_gbs\": %.6g, \"barrier_us\": %.6g}\n",
               1e-9 * fma.one, 1e-9 * fma.both, 1e-9 * cached, 1e-9 * streaming, 1e6 * barrier);
  return std::fclose(json) == 0 ? 0 : 1;
}
