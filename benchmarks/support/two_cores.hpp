#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace bench {

/// Returns the processors that this process may use, in order.
inline std::vector<std::size_t> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

inline void pin_to(std::size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
}

/// Runs `work(0)` and `work(1)` in parallel, each on its own core.
template <class Work>
void on_two_cores(const Work& work) {
  const std::vector<std::size_t> cores = allowed_cores();
  if (cores.size() < 2) {
    std::fprintf(stderr, "This benchmark needs two cores (this process may use %zu). See taskset(1)\n", cores.size());
    std::exit(2);
  }
  std::thread second{[&] {
    pin_to(cores[1]);
    work(1);
  }};
  std::thread first{[&] {
    pin_to(cores[0]);
    work(0);
  }};
  first.join();
  second.join();
}

/// A minimal barrier of two threads: each writes its own cache line and spins on the other's.
class BareBarrier {
 public:
  void operator()(int thread) {
    Line& mine = lines_[thread];
    const unsigned arrivals = mine.arrivals.load(std::memory_order_relaxed) + 1;
    mine.arrivals.store(arrivals, std::memory_order_release);
    const std::atomic<unsigned>& theirs = lines_[1 - thread].arrivals;
    while (static_cast<int>(theirs.load(std::memory_order_acquire) - arrivals) < 0) {
    }
  }

 private:
  struct alignas(128) Line {
    std::atomic<unsigned> arrivals{0};
  };
  Line lines_[2];
};

}  // namespace bench
