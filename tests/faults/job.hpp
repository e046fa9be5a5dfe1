// A job of several workers (worker.cpp) that a test starts, disturbs and waits for.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <net/ports.hpp>
#include <support/own_mpirun.hpp>
#include <support/processes.hpp>
#include <support/temporary_folder.hpp>

namespace faults {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The way to start workers: mpirun; mpirun that does not end the others after a failure; or separately, each with
/// TF_CONFIG.
enum class Start { mpirun, mpirun_keeping, tf_config };

inline std::string_view to_string(Start start) {
  return start == Start::mpirun           ? "mpirun"
         : start == Start::mpirun_keeping ? "mpirun, which lets others live"
                                          : "TF_CONFIG";
}

/// A line in the log of a worker.
struct Said {
  double at;  ///< seconds
  std::string word;
  std::string text;
};

/// Returns the running processes by parent.
inline std::map<pid_t, std::vector<pid_t>> processes_by_parent() {
  std::map<pid_t, std::vector<pid_t>> children;
  DIR* const folder = opendir("/proc");
  while (const dirent* entry = folder != nullptr ? readdir(folder) : nullptr) {
    const pid_t process = std::atoi(entry->d_name);
    if (process <= 0) continue;
    std::ifstream file("/proc/" + std::string{entry->d_name} + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // "4711 (name) S 1 ..."
    if (name_end == std::string::npos || line.size() < name_end + 4 || line[name_end + 2] == 'Z') continue;
    children[std::atoi(line.c_str() + name_end + 3)].push_back(process);
  }
  if (folder != nullptr) closedir(folder);
  return children;
}

/// Returns all descendants of this process, including adopted ones.
inline std::vector<pid_t> descendants() {
  std::map<pid_t, std::vector<pid_t>> children = processes_by_parent();
  std::vector<pid_t> found = children[getpid()];
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<pid_t> more = children[found[i]];
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

/// Instructions for the workers (worker.cpp).
struct Plan {
  std::string policy;
  std::size_t ranks = 2;
  std::string fault;
  std::size_t victim = 1;
  std::size_t replicas = 1;
  long timeout_ms = 20'000;  ///< 0: DIST_COLLECTIVE_TIMEOUT is set, to 6 s
  long start_ms = 60'000;
};

/// Several workers. This process adopts their descendants, and kills those left at the end.
class Job {
 public:
  Job(Start start, const Plan& plan) : start_(start), plan_(plan) {
    take_over_orphans();
    if (start == Start::tf_config) {
      const std::vector<std::string> addresses = free_addresses(plan.ranks);
      for (std::size_t rank = 0; rank < plan.ranks; ++rank) add(rank, tf_config(addresses, rank));
    } else {
      start_mpirun();
    }
  }
  /// Starts no worker: see `add`.
  explicit Job(const Plan& plan) : start_(Start::tf_config), plan_(plan) { take_over_orphans(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { kill_all(); }

  [[nodiscard]] static std::string tf_config(const std::vector<std::string>& addresses, std::size_t index) {
    std::string list;
    for (const std::string& address : addresses) list += (list.empty() ? "\"" : ", \"") + address + "\"";
    return R"({"cluster": {"worker": [)" + list + R"(]}, "task": {"type": "worker", "index": )" +
           std::to_string(index) + "}}";
  }
  /// Returns different addresses of this machine.
  [[nodiscard]] static std::vector<std::string> free_addresses(std::size_t count) {
    std::vector<std::string> addresses;
    for (const auto& endpoint : dist_test::free_endpoints(count))
      addresses.push_back(endpoint.host + ":" + endpoint.port);
    return addresses;
  }

  /// Starts a worker with this TF_CONFIG and the log of `rank`. Returns its process id.
  pid_t add(std::size_t rank, const std::string& tf_config) {
    std::vector<std::string> command{DIST_FAULTS_WORKER};
    append_plan(command);
    children_.push_back(spawn(command, {{"TF_CONFIG", tf_config}, {"DIST_FAULTS_RANK", std::to_string(rank)}}));
    statuses_.push_back(running);
    ends_.push_back(0);
    return children_.back();
  }

  [[nodiscard]] std::vector<Said> said(std::size_t rank) const {
    std::vector<Said> all;
    std::ifstream file(log() + "." + std::to_string(rank));
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      long long at = 0;
      Said one;
      words >> at >> one.word;
      std::getline(words >> std::ws, one.text);
      one.at = static_cast<double>(at) * 1e-9;
      all.push_back(std::move(one));
    }
    return all;
  }
  /// Returns the last line with `word`, or a line with `at` 0.
  [[nodiscard]] Said last(std::size_t rank, std::string_view word) const {
    Said found{0, "", ""};
    for (Said& one : said(rank))
      if (one.word == word) found = std::move(one);
    return found;
  }

  [[nodiscard]] std::string last_words() const {
    std::string words;
    for (std::size_t rank = 0; rank < plan_.ranks; ++rank) {
      const std::vector<Said> all = said(rank);
      words += "the last word of rank " + std::to_string(rank) + ": " + (all.empty() ? "none" : all.back().word) + "\n";
    }
    return words;
  }

  /// Waits until the log of a worker has this word. Throws after `longest`.
  Said await(std::size_t rank, std::string_view word, Clock::duration longest = 60s) const {
    const Clock::time_point end = Clock::now() + longest;
    for (;;) {
      if (Said found = last(rank, word); found.at != 0) return found;
      if (Clock::now() > end)
        throw std::runtime_error("no word '" + std::string{word} + "' from " + std::to_string(rank));
      std::this_thread::sleep_for(2ms);
    }
  }

  /// Waits until all processes of these jobs have ended, and kills late ones. Returns the number of processes left
  /// after the servers of the worlds had time to exit, which must be 0.
  static std::size_t finish(const std::vector<Job*>& jobs, Clock::duration longest = 150s) {
    const auto have_ended = [&] {
      bool all = true;
      for (Job* const job : jobs) all = job->attend() && all;
      return all;
    };
    const Clock::time_point end = Clock::now() + longest;
    while (Clock::now() < end && !have_ended()) std::this_thread::sleep_for(5ms);
    const Clock::time_point servers_end = Clock::now() + 3s;
    while (Clock::now() < servers_end && !descendants().empty()) {
      while (have_ended() && waitpid(-1, nullptr, WNOHANG) > 0) {  // adopted
      }
      std::this_thread::sleep_for(20ms);
    }
    const std::size_t left = descendants().size();
    for (Job* const job : jobs) job->kill_all();
    return left;
  }

  /// The started processes, in order: with TF_CONFIG, the workers themselves.
  [[nodiscard]] const std::vector<pid_t>& children() const { return children_; }
  /// For each child in the order of their start: the exit status, or 128 plus the number of the signal, or `running`.
  [[nodiscard]] const std::vector<int>& statuses() const { return statuses_; }
  static constexpr int running = -1;
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }
  /// Returns the files mapped by workers or created by MPI that still exist.
  [[nodiscard]] std::string files_left() const {
    std::string left;
    for (const std::string& name : folder_.names("tmp")) left += name + " ";
    for (std::size_t rank = 0; rank < plan_.ranks; ++rank)
      for (const Said& one : said(rank))
        if (one.word == "mapped" && access(one.text.c_str(), F_OK) == 0) left += one.text + " ";
    return left;
  }
  [[nodiscard]] std::string output() const { return folder_.read("output"); }
  [[nodiscard]] Start start() const { return start_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  void take_over_orphans() const {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    mkdir(folder_.path("tmp").c_str(), 0700);
  }
  [[nodiscard]] std::string log() const { return folder_.path("log"); }

  /// Performs pending actions: continues a stopped victim, or ends it after all others, and ends an mpirun without
  /// processes. Returns whether all started processes have ended.
  bool attend() {
    bool all = true;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      int status = 0;
      if (statuses_[i] == running && waitpid(children_[i], &status, WNOHANG) == children_[i]) {
        statuses_[i] = support::status_of(status);
        ends_[i] = now();
      }
      all = all && statuses_[i] != running;
    }
    if (!all && (plan_.fault == "pause" || plan_.fault == "stop")) release_victim();
    if (!all && start_ == Start::mpirun_keeping) end_idle_mpirun();
    return all;
  }
  void release_victim() {
    const Said fault = last(plan_.victim, "fault");
    if (fault.at == 0 || released_) return;
    if (plan_.fault == "pause") {
      released_ = now() - fault.at > 0.3;
      if (released_) kill(std::atoi(fault.text.c_str()), SIGCONT);
      return;
    }
    released_ = true;
    for (std::size_t rank = 0; rank < plan_.ranks; ++rank)
      released_ = released_ && (rank == plan_.victim || last(rank, "error").at != 0);
    if (released_) kill(std::atoi(fault.text.c_str()), SIGKILL);
  }
  /// Ends mpirun 4.1, which does not end after a rank was killed if it must keep the others.
  void end_idle_mpirun() {
    if (now() < look_at_mpirun_) return;
    look_at_mpirun_ = now() + 0.05;
    const bool idle = last(plan_.victim, "fault").at != 0 && processes_by_parent()[children_[0]].empty();
    if (!idle) idle_since_ = now();
    if (now() - idle_since_ < 0.3) return;
    kill(children_[0], SIGTERM);
    idle_since_ = now();
  }
  [[nodiscard]] static double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

  void append_plan(std::vector<std::string>& command) const {
    for (const std::string& argument :
         {plan_.policy, std::to_string(plan_.replicas), plan_.fault, std::to_string(plan_.victim),
          std::to_string(plan_.timeout_ms), std::to_string(plan_.start_ms)})
      command.push_back(argument);
  }

  void start_mpirun() {
    std::vector<std::string> command{DIST_MPIRUN, "-n", std::to_string(plan_.ranks)};
    if (support::has_mpich)
      command.insert(command.end(), {"sh", "-c", support::mpirun_shell});
    else if (start_ == Start::mpirun_keeping)
      command.insert(command.end(), {"--mca", "orte_abort_on_non_zero_status", "0"});
    command.push_back(DIST_FAULTS_WORKER);
    append_plan(command);
    children_.push_back(spawn(command, {}));
    statuses_.push_back(running);
    ends_.push_back(0);
  }

  pid_t spawn(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child != 0) return child;
    const int output = open(folder_.path("output").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    unsetenv("TF_CONFIG");
    unsetenv("DIST_COLLECTIVE_TIMEOUT");
    if (plan_.timeout_ms == 0) setenv("DIST_COLLECTIVE_TIMEOUT", "6", 1);
    setenv("DIST_FAULTS_LOG", log().c_str(), 1);
    setenv("TMPDIR", folder_.path("tmp").c_str(), 1);
    for (const char* name :
         {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
      setenv(name, "1", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);  // Open MPI 5's name for the last of them
    if (start_ == Start::mpirun_keeping) {  // Open MPI 5's names for orte_abort_on_non_zero_status
      setenv("PRTE_MCA_state_base_recoverable", "1", 1);
      setenv("PRTE_MCA_state_base_error_non_zero_exit", "0", 1);
    }
    setenv("OMPI_MCA_pml", "ob1", 1);             // Open MPI would also choose it, but later
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // a process that aborts does not free MPI's memory
    if (start_ == Start::mpirun_keeping)          // it leaves its segments when it is ended
      setenv("OMPI_MCA_btl_vader_backing_directory", folder_.path("tmp").c_str(), 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(97);
  }

  void kill_all() {
    for (const Clock::time_point end = Clock::now() + 5s; Clock::now() < end; std::this_thread::sleep_for(2ms)) {
      const std::vector<pid_t> left = descendants();
      if (left.empty()) break;
      for (const pid_t process : left) kill(process, SIGKILL);
      attend();
    }
    attend();
  }

  Start start_;
  Plan plan_;
  support::TemporaryFolder folder_;
  std::vector<pid_t> children_;
  std::vector<int> statuses_;
  std::vector<double> ends_;
  double idle_since_ = now();
  double look_at_mpirun_ = 0;
  bool released_ = false;
};

}  // namespace faults
