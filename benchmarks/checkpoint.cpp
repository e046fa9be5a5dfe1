// Background checkpoints during training: how long start_save blocks, the write speed compared with a plain file, and
// the slow-down of a step, with one processor free and with none.
//
//   bench_checkpoint [FOLDER [MEGABYTES [ROUNDS]]]
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/arguments.hpp"
#include "support/clock.hpp"
#include "support/distribution.hpp"

namespace {

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

/// Writes and syncs a new file like dd conv=fsync. Returns the seconds.
double write_plainly(const std::string& path, std::size_t bytes) {
  const std::vector<char> piece(std::size_t{16} << 20, 'x');
  const double start = bench::seconds();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = file >= 0;
  for (std::size_t done = 0; written && done < bytes;) {
    const std::size_t count = bytes - done < piece.size() ? bytes - done : piece.size();
    const ssize_t taken = ::write(file, piece.data(), count);
    written = taken > 0;
    done += static_cast<std::size_t>(written ? taken : 0);
  }
  written = written && ::fsync(file) == 0;
  const double taken = bench::seconds() - start;
  ::close(file);
  ::unlink(path.c_str());
  if (!written) {
    std::fprintf(stderr, "Cannot write %s\n", path.c_str());
    std::exit(1);
  }
  return taken;
}

/// Computes on every replica for some milliseconds, then reduces.
void step(Mirrored& strategy) {
  strategy.run([](auto& replica) {
    float sums[64] = {};
    for (int i = 0; i < 1'000'000; ++i)
      for (float& sum : sums) sum = sum * 0.999999f + 1e-7f;
    bench::keep(sums);
    bench::keep(sums[0]);
    static_cast<void>(replica.all_reduce(dist::sum, sums[0]));
  });
}

/// Runs steps until `goes_on()` is false. Returns the milliseconds of each.
template <class GoesOn>
std::vector<double> steps(Mirrored& strategy, const GoesOn& goes_on) {
  std::vector<double> milliseconds;
  do {
    const double start = bench::seconds();
    step(strategy);
    milliseconds.push_back((bench::seconds() - start) * 1e3);
  } while (goes_on(milliseconds.size()));
  return milliseconds;
}
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void measure(std::size_t replicas, const std::string& folder, std::size_t bytes, int rounds) {
  constexpr std::size_t parts = 10;
  Mirrored strategy{replicas};
  dist::Checkpoint checkpoint{strategy};
  using Variable = decltype(strategy.variable<float>({1}));
  std::vector<std::unique_ptr<Variable>> variables;
  for (std::size_t i = 0; i < parts; ++i) {
    variables.push_back(std::make_unique<Variable>(strategy.variable<float>({bytes / sizeof(float) / parts}, 1.0f)));
    checkpoint.add(dist::concat("part_", i), *variables.back());
  }
  const std::string path = folder + "/bench_checkpoint";
  checkpoint.save(path);  // warm-up
  std::vector<double> plain, alone, stalls, beside, slower;
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(write_plainly(path + ".plain", bytes));
    double start = bench::seconds();
    auto saving = checkpoint.start_save(path);
    stalls.push_back(bench::seconds() - start);
    start = bench::seconds();
    saving.wait();
    alone.push_back(bench::seconds() - start);
    const double without = mean(steps(strategy, [](std::size_t done) { return done < 50; }));
    saving = checkpoint.start_save(path);
    start = bench::seconds();
    const double with = mean(steps(strategy, [&](std::size_t) { return !saving.is_done(); }));
    beside.push_back(bench::seconds() - start);
    slower.push_back(with / without);
  }
  dist::detail::remove_checkpoint(path);
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  std::printf("%8zu %10.2f %10.2f %8.2f %10.2f %10.2f %12.2f\n", replicas, gigabytes / bench::median(plain),
              gigabytes / bench::median(alone), bench::median(plain) / bench::median(alone), bench::median(stalls),
              gigabytes / bench::median(beside), bench::median(slower));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 3, "[FOLDER [MEGABYTES [ROUNDS]]]",
                                   "Saves a checkpoint of MEGABYTES (default 1000) in FOLDER (default .) while "
                                   "replicas compute, ROUNDS (default 3) times."};
  const std::string folder = arguments.text(0) != nullptr ? arguments.text(0) : ".";
  const auto megabytes = static_cast<std::size_t>(arguments.number(1, 1000));
  const std::size_t processors = std::thread::hardware_concurrency();
  std::printf("medians; GB/s including fsync, seconds of start_save, time of a step during a save over a step alone\n");
  std::printf("%8s %10s %10s %8s %10s %10s %12s\n", "replicas", "plain file", "save", "ratio", "stall",
              "save in background", "step ratio");
  for (const std::size_t replicas : {processors > 1 ? processors - 1 : 1, processors})
    measure(replicas, folder, megabytes * 1'000'000, arguments.number(2, 3));
  return 0;
}
