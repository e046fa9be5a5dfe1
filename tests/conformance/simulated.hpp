// Runs typed suites on workers connected by a simulated network, all in one process; include before the suites. A test
// case runs on all workers concurrently, so each of them enters its subcases in the same order.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/strategy/workers.hpp>
#include <dist/variable/store.hpp>
#include <support/simulated_network.hpp>
#include <support/simulated_workers.hpp>

namespace conformance {

/// A worker's traversal of the subcases of a test case; each pass takes a new path.
class Subcases {
 public:
  void begin_pass() {
    taken_.clear();
    left_.clear();
  }
  /// Returns true if another pass is needed.
  [[nodiscard]] bool has_more() const { return !left_.empty(); }

  [[nodiscard]] bool enter(const std::string& name) {
    const std::string path = here_ + "/" + name;
    if (done_.contains(path)) return false;
    if (!taken_.insert(here_).second) {  // one on this level was taken
      left_.insert(path);
      return false;
    }
    here_ = path;
    return true;
  }
  void leave() {
    bool is_done = true;
    for (const std::string& path : left_) is_done = is_done && !path.starts_with(here_ + "/");
    if (is_done)
      done_.insert(here_);
    else
      left_.insert(here_);
    here_.resize(here_.rfind('/'));
  }

 private:
  std::string here_;
  std::set<std::string> taken_;  // paths with an entered subcase in this pass
  std::set<std::string> left_;   // for a later pass
  std::set<std::string> done_;
};

/// The worker of the calling thread.
struct SimulatedWorker {
  const support::SimulatedNetwork::Communicator* comm = nullptr;
  Subcases* subcases = nullptr;
};
inline thread_local SimulatedWorker simulated_worker{};

/// A strategy of several workers without MPI.
class SimulatedStrategy
    : public dist::BasicStrategy<SimulatedStrategy, dist::ThreadReplicas<dist::ThreadAllReduce, dist::Cpu>,
                                 dist::Workers<dist::RingAllReduce, support::SimulatedWorkersNetwork>,
                                 dist::MirroredStore> {
 public:
  explicit SimulatedStrategy(std::size_t replicas = 1) : SimulatedStrategy(*simulated_worker.comm, replicas) {}
  SimulatedStrategy(const support::SimulatedNetwork::Communicator& comm, std::size_t replicas)
      : BasicStrategy(unpinned(replicas), support::SimulatedWorld{comm},
                      dist::MultiWorkerOptions{.replicas = replicas}) {}

  [[nodiscard]] std::string describe() const { return "Simulated: " + replicas_part().describe(); }

 private:
  /// Replicas that do not spin, because the workers share the processors.
  static dist::MirroredOptions unpinned(std::size_t replicas) {
    dist::MirroredOptions options = Replicas::with_replicas(replicas);
    options.pinned = false;
    return options;
  }
};

class SimulatedSubcase {
 public:
  explicit SimulatedSubcase(const std::string& name) : entered_(simulated_worker.subcases->enter(name)) {}
  SimulatedSubcase(const SimulatedSubcase&) = delete;
  SimulatedSubcase& operator=(const SimulatedSubcase&) = delete;
  ~SimulatedSubcase() {
    if (entered_) simulated_worker.subcases->leave();
  }
  explicit operator bool() const { return entered_; }

 private:
  bool entered_;
};

/// Runs a test case on 1, 2, 3 and 4 workers, with one pass per subcase.
template <class Body>
void on_simulated_workers(Body&& body) {
  for (std::size_t workers = 1; workers <= 4; ++workers) {
    support::SimulatedNetwork network{workers, dist::usual_costs, support::Payload::travels, support::RunOn::threads};
    std::vector<Subcases> subcases(workers);
    do {
      network.run([&](const support::SimulatedNetwork::Communicator& comm) {
        CAPTURE(workers);
        CAPTURE(comm.rank());
        subcases[comm.rank()].begin_pass();
        simulated_worker = {&comm, &subcases[comm.rank()]};
        body();
      });
    } while (subcases.front().has_more());
  }
}

}  // namespace conformance

#undef SUBCASE
#define SUBCASE(name) if (const conformance::SimulatedSubcase DOCTEST_ANONYMOUS(simulated_subcase_){name})

#define DIST_SIMULATED_CASE(body, description, Type, id)                                                      \
  template <class Type>                                                                                       \
  static void body();                                                                                         \
  DOCTEST_TEST_CASE_TEMPLATE_DEFINE(description, Type, id) { conformance::on_simulated_workers(body<Type>); } \
  template <class Type>                                                                                       \
  static void body()
#undef TEST_CASE_TEMPLATE_DEFINE
#define TEST_CASE_TEMPLATE_DEFINE(description, Type, id) \
  DIST_SIMULATED_CASE(DOCTEST_ANONYMOUS(simulated_case_), description, Type, id)
