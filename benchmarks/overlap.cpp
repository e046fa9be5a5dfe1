// The training step of the guide's CNN on several processes, with and without overlap of gradient sums and backward
// pass: in the node's shared memory, and with MPI. Writes a trace of the last steps to TRACE.RANK.json, for
// chrome://tracing.
//
//   mpirun -n 2 bench_overlap [ROUNDS [TRACE]]
//
// To simulate a slower network: mpirun --mca btl tcp,self --mca btl_tcp_if_include lo -n 2 ...
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <dist/multi_worker.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>

#include "support/arguments.hpp"
#include "support/cnn.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"

namespace {

namespace nn = dist::nn;
using Strategy = dist::MultiWorker<dist::MpiAllReduce>;
using Net = nn::Network<bench::Cnn, nn::OneDnn>;

/// Time of the gradient reduction: with the update, after `backward`, or during it.
enum class Way { fused, summed, overlapped };

class Training {
 public:
  Training(Strategy& strategy, Way way, dist::Trace* trace)
      : strategy_(strategy), way_(way), overlap_{strategy, net_, {.bytes_per_pack = 1 << 20}, trace} {}

  void operator()(const bench::Images& images) {
    strategy_.run([&](auto& replica) {
      const auto logits = net_.forward(replica, images.x.view());
      const auto loss = nn::sparse_categorical_crossentropy(replica, logits, images.y.view(),
                                                            images.x.rows() * replica.num_replicas_in_sync());
      if (way_ == Way::overlapped) {
        net_.backward(replica, loss, overlap_.on_ready(replica));
        overlap_.wait(replica);
      } else {
        net_.backward(replica, loss);
      }
      if (way_ == Way::summed) replica.all_reduce(dist::sum, net_.gradients().component(replica));
      if (way_ == Way::fused)
        optimizer_.apply_gradients(replica);
      else
        optimizer_.apply_gradients(replica, nn::skip_aggregation);
    });
  }

 private:
  Strategy& strategy_;
  Way way_;
  Net net_{strategy_, 1};
  nn::Optimizer<Strategy, Net, nn::SGD> optimizer_{strategy_, net_, nn::SGD{.learning_rate = 1e-3f}};
  nn::OverlappedAllReduce<Strategy, Net> overlap_;
};

/// True if every worker has its own core: their joint rate is the rate of one times their number. Equal on all
/// workers.
bool quiet(Strategy& strategy) {
  const auto& workers = strategy.workers();
  double alone = strategy.is_chief() ? bench::fma_rate(0.02) : 0;
  workers.broadcast(0, std::span{&alone, 1});
  double together = bench::fma_rate(0.02);
  workers.all_reduce(dist::sum, std::span{&together, 1});
  const double expected = alone * static_cast<double>(strategy.num_workers());
  return together >= 0.95 * expected && together <= 1.05 * expected;
}

void measure(bool in_memory, int rounds, const char* trace_path) {
  constexpr int steps = 10;
  dist::MultiWorkerOptions options;
  options.hierarchical = in_memory;
  Strategy strategy{options};
  dist::Trace trace;
  const bench::Images images{64};
  Training fused{strategy, Way::fused, nullptr}, summed{strategy, Way::summed, nullptr},
      overlapped{strategy, Way::overlapped, &trace};
  const auto milliseconds = [&](Training& training) {
    training(images);
    strategy.workers().barrier();
    const double start = bench::seconds();
    for (int step = 0; step < steps; ++step) training(images);
    return 1e3 * (bench::seconds() - start) / steps;
  };
  std::vector<double> times[3], gains;
  bench::Marks marks;
  while (static_cast<int>(marks.quiet()) < rounds && static_cast<int>(marks.rounds()) < 2 * rounds) {
    const bool quiet_before = quiet(strategy);
    times[0].push_back(milliseconds(fused));
    times[1].push_back(milliseconds(summed));
    trace.clear();
    times[2].push_back(milliseconds(overlapped));
    gains.push_back(times[1].back() / times[2].back());
    marks.add(quiet(strategy) && quiet_before);
  }
  std::int64_t communication = 0;
  for (const dist::Trace::Event& event : trace.events())
    if (event.name() == "all_reduce of bucket") communication += event.end - event.begin;
  if (trace_path != nullptr)
    trace.write_chrome_json(dist::concat(trace_path, ".", strategy.worker_rank(), ".json"), strategy.worker_rank());
  if (!strategy.is_chief()) return;
  const bench::Distribution gain = bench::distribution(marks.counted(gains));
  std::printf(
      "%s, ms per step: reduced and applied in one pass %.2f, summed after backward %.2f, during it %.2f\n"
      "  summed after over during: %.2f (min %.2f, 10 %% %.2f, 90 %% %.2f, max %.2f%s), %s\n"
      "  %.0f %% of the communication overlapped with backward\n",
      in_memory ? "in the node's memory" : "through MPI", bench::median(marks.counted(times[0])),
      bench::median(marks.counted(times[1])), bench::median(marks.counted(times[2])), gain.median, gain.least,
      gain.tenth, gain.ninetieth, gain.greatest, marks.effect(gains).c_str(), marks.describe().c_str(),
      communication == 0 ? 0.0
                         : 100.0 * static_cast<double>(trace.overlap("backward of", "all_reduce of bucket")) /
                               static_cast<double>(communication));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 2, "[ROUNDS [TRACE]]",
                                   "Compares gradient sums during and after the backward pass: mpirun -n 2 "
                                   "bench_overlap."};
  const dist::mpi::Environment environment{dist::mpi::ThreadLevel::multiple};
  const int rounds = arguments.number(0, 20);
  const char* const trace = arguments.text(1);
  measure(true, rounds, nullptr);
  measure(false, rounds, trace);
}
