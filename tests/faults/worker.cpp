// One worker of a small training, in which one worker has a fault. A Job (job.hpp) starts several:
//
//     faults_worker POLICY REPLICAS FAULT VICTIM TIMEOUT START
//
// POLICY is ring, window, mpi, or flat: ring without the memory of the node. FAULT happens to the worker VICTIM; see
// `Fault`. TIMEOUT is the timeout of collectives in milliseconds, 0 for the default; START is the timeout of the start.
// The exit status is 0, 3 after a dist::Error, or 4 after another exception. Events are logged in the file
// DIST_FAULTS_LOG.<rank>, with times that are comparable between processes.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/replica_batches.hpp>
#include <dist/multi_worker.hpp>

#include "log.hpp"
#include "worker_plan.hpp"

namespace {

using faults::Log;
using faults::WorkerPlan;

/// The fault of the victim, and its place. It is logged first, to measure the time until the others notice.
class Fault {
 public:
  static constexpr int step = 5;

  Fault(std::string_view name, bool here) : name_(name), here_(here) { active_ = this; }

  [[nodiscard]] bool is(std::string_view name) const { return name_ == name; }
  [[nodiscard]] bool happens(std::string_view name) const { return here_ && name_ == name; }
  /// True for faults in large collectives.
  [[nodiscard]] bool needs_time() const { return is("kill_inside") || is("kill_in_broadcast"); }

  /// The faults between two steps.
  void between() const {
    if (happens("kill")) strike(SIGKILL);
    if (happens("stop") || happens("pause")) strike(SIGSTOP);
    if (is("stop_server")) {
      const pid_t server = dist::WorkerGroup::started().hosted->server();
      if (here_) Log::write("fault");
      if (here_) ::kill(server, SIGSTOP);
      // On a busy machine, it may take seconds until a thread runs and stops. All wait, so that none is late.
      while (dist::detail::process_state(server) != 'T') usleep(1000);
    }
    if (happens("leave")) {
      Log::write("fault");
      _exit(0);
    }
    if (happens("exit")) {
      Log::write("fault");
      std::exit(0);
    }
    if (happens("busy")) {  // the others wait for it, and report that on a signal
      Log::write("fault");
      sleep(3);
    }
    if (happens("throw_outside")) {
      Log::write("fault");
      throw std::runtime_error("the disk of the second worker is full");
    }
  }
  /// The faults at the start of a replica function, on the last replica of the process.
  void in_replica() const {
    if (!happens("throw_in_replica")) return;
    Log::write("fault");
    throw std::runtime_error("the loss is not a number");
  }
  /// The faults after the last step, without the strategy.
  void at_end() const {
    if (happens("stop_at_end")) strike(SIGSTOP);
    if (!happens("late") && !happens("never_ends")) return;
    Log::write("fault");
    sleep(is("late") ? 3 : 60);
  }
  /// The faults in MPI_Init.
  static void in_init() {
    if (active_ != nullptr && active_->happens("kill_in_init")) active_->strike(SIGKILL);
  }

  /// Kills the process after a millisecond, unless the scope ends before: for a call that takes longer.
  class Kill {
   public:
    explicit Kill(bool armed) : armed_(armed) {
      if (!armed_) return;
      std::signal(SIGALRM, [](int) {
        if (inside_ != 0) active_->strike(SIGKILL);
      });
      inside_ = 1;
      set_timer(1000);
    }
    Kill(const Kill&) = delete;
    Kill& operator=(const Kill&) = delete;
    ~Kill() {
      if (!armed_) return;
      inside_ = 0;
      set_timer(0);
    }

   private:
    static void set_timer(long microseconds) {
      const itimerval once{{0, 0}, {0, microseconds}};
      setitimer(ITIMER_REAL, &once, nullptr);
    }
    bool armed_;
    inline static volatile std::sig_atomic_t inside_ = 0;
  };

 private:
  void strike(int signal) const {
    Log::write("fault", dist::concat(static_cast<long>(getpid())).c_str());
    kill(getpid(), signal);
  }

  std::string name_;
  bool here_;
  inline static const Fault* active_ = nullptr;
};

/// Logs the mapped files of shared memory and of the job's temporary folder, so that the test can check their removal.
void log_mapped_files() {
  const std::string temporary = dist::concat(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "", "/");
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  char line[1024];
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    const char* const path = std::strchr(line, '/');
    if (path == nullptr) continue;
    const std::string_view file{path, std::strcspn(path, "\n")};
    if (file.starts_with("/dev/shm/") || file.starts_with(temporary)) Log::write("mapped", std::string{file}.c_str());
  }
  if (maps != nullptr) std::fclose(maps);
}

/// Collectives in which the victim's call differs: all must report both calls, and continue together.
template <class Workers>
void disagree(const Workers& workers, bool victim) {
  std::vector<float> floats(64, 1);
  std::vector<int> integers(64, 1);
  const std::span<float> all{floats};
  const auto check = [&](const char* what, auto&& call) {
    try {
      Log::write("fault", what);
      call();
      throw std::logic_error(dist::concat("nobody noticed that the workers disagree on the ", what));
    } catch (const dist::CollectiveMismatch& error) {
      Log::write("mismatch", dist::concat(what, ": ", error.what()).c_str());
    }
    float members = 1;
    workers.all_reduce(dist::sum, std::span<float>{&members, 1});
    if (members != static_cast<float>(workers.communicator().size())) throw std::logic_error("a wrong sum afterwards");
  };
  check("count", [&] { workers.all_reduce(dist::sum, all.first(victim ? 63 : 64)); });
  check("type", [&] {
    if (victim)
      workers.all_reduce(dist::sum, std::span<int>{integers});
    else
      workers.all_reduce(dist::sum, all);
  });
  check("reduction", [&] {
    if (victim)
      workers.all_reduce(dist::max, all);
    else
      workers.all_reduce(dist::sum, all);
  });
  check("root", [&] { workers.broadcast(victim ? 1 : 0, all); });
  check("kind", [&] {
    if (victim)
      workers.barrier();
    else
      workers.all_reduce(dist::sum, all);
  });
}

/// A loop over data of which the victim has more. It leaves the loop while the others ask for the next step.
template <class Strategy>
void loop_over_data(Strategy& strategy, bool victim) {
  dist::data::AgreedEnd end{strategy.agreement(), dist::data::Cardinality::unknown(), dist::data::Remainder::keep};
  for (int step = 0; end.runs(victim || step < Fault::step); ++step) {
    if (step != Fault::step || !victim) continue;
    Log::write("fault");
    return;
  }
  throw std::logic_error("the loop has ended");
}

template <class Ops>
void train(const WorkerPlan& plan, const Fault& fault) {
  dist::MultiWorker<Ops> strategy{plan.options()};
  log_mapped_files();
  Log::write("started", strategy.describe().c_str());
  if (fault.is("disagree")) return disagree(strategy.workers(), plan.is_victim());
  if (fault.is("return_from_data")) return loop_over_data(strategy, plan.is_victim());

  const std::size_t elements = fault.needs_time() ? std::size_t{4} << 20 : 1000;
  const auto make_weights = [&] {
    const Fault::Kill soon{fault.happens("kill_in_broadcast")};
    return strategy.template variable<float>({elements}, [](dist::TensorView<float> values) {
      for (float& value : values.elements()) value = 1;
    });
  };
  auto weights = make_weights();
  for (int more = 0; fault.is("kill_in_broadcast") && more < 1000; ++more) make_weights();
  auto gradients = strategy.template buffer<float>({elements});
  const int steps = fault.needs_time() ? 1000 : 10;
  float expected = 1;
  for (int step = 0; step < steps; ++step) {
    if (step == Fault::step) fault.between();
    if (step == Fault::step && fault.happens("return")) {
      Log::write("fault");
      return;
    }
    strategy.run([&](auto& replica) {
      if (step == Fault::step && replica.local_index() + 1 == plan.replicas) fault.in_replica();
      const bool skips = step == Fault::step && fault.happens("skip");
      if (skips && replica.local_index() == 0) Log::write("fault");
      const float number = skips ? 0 : replica.all_reduce(dist::sum, 1.0F);
      if (!skips && number != static_cast<float>(replica.num_replicas_in_sync()))
        throw std::logic_error("a wrong sum of the replicas");
      for (float& gradient : gradients.component(replica)) gradient = static_cast<float>(step % 4);
      const Fault::Kill soon{fault.happens("kill_inside") && step >= Fault::step};
      replica.reduce_and_apply(dist::mean, gradients.component(replica), weights.component(replica),
                               [](std::size_t, float weight, float mean) { return weight + mean; });
    });
    expected += static_cast<float>(step % 4);
  }
  for (const float weight : weights.read(strategy.scope()).elements())
    if (weight != expected) throw std::logic_error("wrong weights");
}

/// Sets limits as a batch system may: too few open files, or low limits on files, memory and file size.
void set_limits(const WorkerPlan& plan) {
  const auto limit_to = [](auto resource, rlim_t most) {
    const rlimit limit{most, most};
    setrlimit(resource, &limit);
  };
  if (plan.fault == "few_files") limit_to(RLIMIT_NOFILE, 22);
  if (plan.fault != "low_limits") return;
  limit_to(RLIMIT_NOFILE, 64);
  limit_to(RLIMIT_AS, rlim_t{2} << 30);
  limit_to(RLIMIT_FSIZE, rlim_t{8} << 20);
}

void train(const WorkerPlan& plan) {
  const Fault fault{plan.fault, plan.is_victim()};
  if (plan.policy == "mpi")
    train<dist::MpiAllReduce>(plan, fault);
  else if (plan.policy == "window")
    train<dist::NodeAllReduce>(plan, fault);
  else
    train<dist::RingAllReduce>(plan, fault);
  fault.at_end();
}

}  // namespace

/// Intercepts MPI_Init_thread: the process may die here, while the others of its world wait for it in MPI_Init.
extern "C" int MPI_Init_thread(int* argc, char*** argv, int wanted, int* provided) {
  Fault::in_init();
  return PMPI_Init_thread(argc, argv, wanted, provided);
}

int main(int argc, char** argv) {
  const auto plan = faults::plan_of(argc, argv);
  if (!plan) return 2;
  set_limits(*plan);
  return faults::run(
      *plan, [&] { train(*plan); }, [] {});
}
