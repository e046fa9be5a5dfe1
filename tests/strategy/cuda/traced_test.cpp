// Traces of GPUs: the work of each queue, in a separate row.
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/step_graph.hpp>
#include <support/fake_cuda/machines.hpp>

using Mirrored = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
using dist::Trace;

namespace {

/// A trace to which strategies record while it exists.
struct Active {
  Trace trace;
  Active() { dist::detail::active_trace.store(&trace); }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  ~Active() { dist::detail::active_trace.store(nullptr); }
};

struct AddOne {
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] += 1.0F; }
};

constexpr std::size_t replicas = 3, elements = 100;

/// A step that all-reduces an array of the device and a number of the host.
class Program {
  [[nodiscard]] auto put() {
    return [this](auto replica) {
      const auto mine = sums_.component(replica);
      replica.for_each(mine.size(), AddOne{mine.data()});
      replica.all_reduce(dist::mean, mine);
    };
  }

 public:
  Program() : strategy_(replicas), sums_(strategy_.variable<float>({elements})) {}

  void step() { strategy_.run(put()); }
  void captured_step() {
    if (!graph_) graph_.emplace(strategy_);
    graph_->run(put());
  }
  void wait() {
    for (std::size_t local = 0; local < replicas; ++local) strategy_.scope().queue(local).wait();
  }
  void number() {
    strategy_.run([](auto replica) { static_cast<void>(replica.all_reduce(dist::sum, 1.0F)); });
  }

 private:
  Mirrored strategy_;
  decltype(strategy_.variable<float>({elements})) sums_;
  std::optional<dist::StepGraph<Mirrored>> graph_;
};

/// Returns the events of rows other than threads.
std::vector<Trace::Event> of_queues(const Trace& trace, const char* name) {
  std::vector<Trace::Event> found;
  for (const Trace::Event& event : trace.events())
    if (event.thread > 4'194'304 && event.name() == name) found.push_back(event);
  return found;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("without a trace no events are created or queried") {
  fake_cuda::restart({});
  Program program;
  program.step();
  const std::size_t events = fake_cuda::live().events;
  CHECK(events == 2 * replicas);  // for the collectives
  fake_cuda::fail_call("cudaEventElapsedTime", cudaErrorUnknown);
  for (int step = 0; step < 3; ++step) program.step();
  program.wait();
  CHECK(fake_cuda::live().events == events);
  float milliseconds = 0;
  // the first call of cudaEventElapsedTime
  CHECK(cudaEventElapsedTime(&milliseconds, nullptr, nullptr) == cudaErrorUnknown);
}

TEST_CASE("each queue has runs and collectives, at the time of their execution on the GPU") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Active active;
    Program program;
    constexpr std::size_t steps = 4;
    const std::int64_t before = Trace::now();
    for (std::size_t step = 0; step < steps; ++step) program.step();
    program.wait();
    const std::int64_t after = Trace::now();
    const std::vector<Trace::Event> runs = of_queues(active.trace, "run"),
                                    reductions = of_queues(active.trace, "all_reduce");
    REQUIRE(runs.size() == replicas * steps);
    REQUIRE(reductions.size() == replicas * steps);
    constexpr std::int64_t doubt = 2'000'000;
    for (const Trace::Event& reduction : reductions) {
      std::size_t around = 0;
      for (const Trace::Event& run : runs)
        if (run.thread == reduction.thread && run.number == reduction.number && run.begin <= reduction.begin &&
            reduction.end <= run.end)
          ++around;
      CHECK(around >= 1);
      CHECK(reduction.begin >= before - doubt);
      CHECK(reduction.end <= after + doubt);
    }
    for (std::size_t replica = 0; replica < replicas; ++replica)
      CHECK(count(active.trace.chrome_json(), dist::concat("\"thread_name\",\"args\":{\"name\":\"queue ", replica,
                                                           " of GPU ", replica % 2, "\"}")) == 1);
    program.number();  // on the host
    program.wait();
    CHECK(of_queues(active.trace, "all_reduce").size() == replicas * steps);
    CHECK(of_queues(active.trace, "run").size() == replicas * (steps + 1));
  }
}

TEST_CASE("a graph is one event of the queue that launches it") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Active active;
    Program program;
    for (int step = 0; step < 3; ++step) program.captured_step();
    program.wait();
    CHECK(of_queues(active.trace, "graph").size() == 3);
    CHECK(of_queues(active.trace, "run").empty());
    CHECK(of_queues(active.trace, "all_reduce").empty());
  }
}

TEST_CASE("a GPU without events is not traced, but works") {
  fake_cuda::restart({});
  const Active active;
  Program program;
  fake_cuda::fail_call("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation);
  program.step();
  program.step();
  program.wait();
  CHECK(of_queues(active.trace, "run").size() == 2 * replicas - 1);
}

TEST_CASE("a strategy that outlives its trace records to the next one, and to none after that") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  Program program;
  for (int round = 0; round < 2; ++round) {
    const Active active;
    program.step();
    program.wait();
    CHECK(of_queues(active.trace, "run").size() == replicas);
    CHECK(count(active.trace.chrome_json(), "queue 0 of GPU 0") == 1);
    program.step();
  }
  program.wait();
}

TEST_CASE("events that are pending when a strategy ends are written to the file") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  const char* const folder = std::getenv("TMPDIR");
  const std::string path = dist::concat(folder == nullptr ? "/tmp" : folder, "/dist-traced-", getpid(), ".json");
  {
    const dist::TraceFile trace{path};
    Program program;
    program.step();
  }
  std::ifstream file{path};
  const std::string json{std::istreambuf_iterator<char>{file}, {}};
  std::remove(path.c_str());
  CHECK(count(json, "\"name\":\"run\"") == 2 * replicas);  // for threads and queues
  CHECK(count(json, "\"name\":\"all_reduce\"") == 2 * replicas);
  CHECK(count(json, "\"args\":{\"name\":\"queue ") == replicas);
}
