// Gloo's all-reduce between two processes over TCP on the loopback interface, with the same timing as ours and the
// fastest of its algorithms for each size. Gloo reduces in place.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/aligned_memory.hpp"
#include "../support/collective_options.hpp"
#include "../support/collective_table.hpp"
#include "../support/collective_timing.hpp"
#include "../support/two_cores.hpp"

namespace {

constexpr std::size_t ranks = 2;
constexpr std::size_t most_times = 1 << 16;

/// Shared memory for timing between the two processes, because Gloo's own barrier takes milliseconds.
struct Meeting {
  struct alignas(128) Line {
    std::atomic<unsigned> arrivals;
  };
  Line lines[ranks];
  double times[ranks][most_times];

  void barrier(std::size_t rank) {
    std::atomic<unsigned>& mine = lines[rank].arrivals;
    const std::atomic<unsigned>& theirs = lines[1 - rank].arrivals;
    const unsigned round = mine.load(std::memory_order_relaxed) + 1;
    mine.store(round, std::memory_order_release);
    // Yields, because the peer may wait for data that a Gloo thread must send from this core.
    for (int spins = 0; static_cast<int>(theirs.load(std::memory_order_acquire) - round) < 0; ++spins)
      if (spins > 1000) sched_yield();
  }
};

template <class T>
struct Rank {
  std::size_t rank;
  bool is_sum;
  std::span<T> values;
  Meeting* meeting;
  std::function<void()> call;

  void write_input(unsigned round) { bench::write_input(values, rank, round); }
  void all_reduce() { call(); }
  void barrier() { meeting->barrier(rank); }
  void max(std::span<double> times) {
    for (; !times.empty(); times = times.subspan(std::min(times.size(), most_times))) {
      const std::size_t count = std::min(times.size(), most_times);
      std::copy_n(times.data(), count, meeting->times[rank]);
      barrier();
      for (std::size_t i = 0; i < count; ++i) times[i] = std::max(times[i], meeting->times[1 - rank][i]);
      barrier();
    }
  }
  [[nodiscard]] std::size_t count_wrong(unsigned round) const {
    return bench::count_wrong(std::span<const T>{values}, is_sum, ranks, round);
  }
};

/// An algorithm after its one-time setup.
struct Algorithm {
  std::string name;
  std::function<void()> call;
};

template <class T>
std::function<void()> function(const std::shared_ptr<gloo::Context>& context, std::span<T> values, bool is_sum,
                               gloo::AllreduceOptions::Algorithm algorithm) {
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm);
  options->setOutput(values.data(), values.size());
  using Reduce = void (*)(void*, const void*, const void*, std::size_t);
  options->setReduceFunction(is_sum ? static_cast<Reduce>(&gloo::sum<T>) : static_cast<Reduce>(&gloo::max<T>));
  return [options] { gloo::allreduce(*options); };
}

template <class T>
std::array<Algorithm, 5> algorithms(const std::shared_ptr<gloo::Context>& context, std::span<T> values, bool is_sum) {
  const std::vector<T*> pointers{values.data()};
  const int count = static_cast<int>(values.size());
  const gloo::ReductionFunction<T>* reduce = is_sum ? gloo::ReductionFunction<T>::sum : gloo::ReductionFunction<T>::max;
  const auto classic = [&]<class Kind>(std::type_identity<Kind>) -> std::function<void()> {
    auto made = std::make_shared<Kind>(context, pointers, count, reduce);
    return [made] { made->run(); };
  };
  return {{{"ring", classic(std::type_identity<gloo::AllreduceRing<T>>{})},
           {"ring chunked", classic(std::type_identity<gloo::AllreduceRingChunked<T>>{})},
           {"halving doubling", classic(std::type_identity<gloo::AllreduceHalvingDoubling<T>>{})},
           {"new ring", function<T>(context, values, is_sum, gloo::AllreduceOptions::Algorithm::RING)},
           {"new bcube", function<T>(context, values, is_sum, gloo::AllreduceOptions::Algorithm::BCUBE)}}};
}

template <class T>
int measure(const bench::CollectiveOptions& options, const std::shared_ptr<gloo::Context>& context, Meeting* meeting) {
  const auto rank = static_cast<std::size_t>(context->rank);
  const bench::AlignedMemory<T> memory{options.sizes.back() / sizeof(T)};
  bench::CollectiveTable table{"Gloo over TCP, in place, best algorithm", options, ranks};
  for (const std::size_t bytes : options.sizes) {
    const std::size_t count = bytes / sizeof(T);
    if (count == 0) continue;
    const std::span<T> values = memory.first(count);
    bench::Timing best;
    std::string name;
    for (const Algorithm& algorithm : algorithms<T>(context, values, options.op == "sum")) {
      Rank<T> self{rank, options.op == "sum", values, meeting, algorithm.call};
      const bench::Timing timing = bench::time_all_reduce(self, count * sizeof(T), options.duration);
      best.wrong += timing.wrong;
      if (!name.empty() && timing.seconds >= best.seconds) continue;
      best.seconds = timing.seconds;
      name = algorithm.name;
    }
    table.add(count * sizeof(T), count, best, name);
  }
  return rank == 0 ? table.finish() : 0;
}

int run_rank(const bench::CollectiveOptions& options, int rank, const std::string& folder, Meeting* meeting) {
  if (rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;  // only rank 0 prints the table
  const std::vector<std::size_t> cores = bench::allowed_cores();
  bench::pin_to(cores[static_cast<std::size_t>(rank) % cores.size()]);  // includes the threads that Gloo starts
  try {
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr{"127.0.0.1"});
    gloo::net::FileStore store{folder};
    const auto context = std::make_shared<gloo::net::Context>(rank, static_cast<int>(ranks));
    context->setTimeout(std::chrono::seconds{60});
    context->connectFullMesh(store, device);
    return bench::with_element_type(options, [&]<class T>() { return measure<T>(options, context, meeting); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "Gloo, rank %d: %s\n", rank, error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::CollectiveOptions options = bench::parse_collective_options(argc, argv);
  const bench::AlignedMemory<Meeting> meeting{1, true};
  std::string folder = std::filesystem::temp_directory_path() / "bench_gloo.XXXXXX";  // rendezvous of the processes
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    return 1;
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    _exit(run_rank(options, 1, folder, meeting.data()));
  }
  int status = run_rank(options, 0, folder, meeting.data());
  if (status != 0) kill(child, SIGKILL);
  int child_status = 0;
  waitpid(child, &child_status, 0);
  if (child_status != 0) status = 1;
  std::filesystem::remove_all(folder);
  return status;
}
