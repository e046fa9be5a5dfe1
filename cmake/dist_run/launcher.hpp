/// Launcher for one machine: starts the tasks of a job, and sets TF_CONFIG for each.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/net/listen.hpp>
#include <dist/net/secret.hpp>

namespace dist_run {

using Clock = std::chrono::steady_clock;
using dist::concat;

struct Options {
  std::size_t workers = 0;
  std::size_t servers = 0;  ///< parameter servers; if not 0, the job has a chief
  bool evaluator = false;
  std::size_t restarts = 0;
  bool secret = false;
  std::chrono::milliseconds grace{10'000};  ///< time to exit for the remaining tasks when the job ends
  std::vector<std::string> command{};
};

/// A task of the cluster, identified as in TF_CONFIG.
struct Task {
  std::string type;
  std::size_t index;

  [[nodiscard]] std::string name() const { return concat(type, " ", index); }
};

/// Returns all tasks of the job. The chief is first if there are parameter servers.
inline std::vector<Task> tasks_of(const Options& options) {
  std::vector<Task> tasks;
  if (options.servers > 0) tasks.push_back({"chief", 0});
  for (std::size_t i = 0; i < options.servers; ++i) tasks.push_back({"ps", i});
  for (std::size_t i = 0; i < options.workers; ++i) tasks.push_back({"worker", i});
  if (options.evaluator) tasks.push_back({"evaluator", 0});
  return tasks;
}

/// Returns the TF_CONFIG of task `number`. Task i listens on ports[i]. In a job with parameter servers, the evaluator is not part of the
/// cluster (spec J12): its own TF_CONFIG lists only the evaluator.
inline std::string tf_config(const std::vector<Task>& tasks, const std::vector<dist::net::ReservedPort>& ports,
                             std::size_t number) {
  const auto evaluates = [](const Task& task) { return task.type == "evaluator"; };
  const bool apart = std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.type == "ps"; });
  std::string cluster;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (apart && evaluates(tasks[i]) != evaluates(tasks[number])) continue;
    if (tasks[i].index > 0)
      cluster += ", ";
    else
      cluster += concat(cluster.empty() ? "" : "], ", '"', tasks[i].type, "\": [");
    cluster += concat("\"127.0.0.1:", ports[i].number, '"');
  }
  return concat("{\"cluster\": {", cluster, "]}, \"task\": {\"type\": \"", tasks[number].type,
                "\", \"index\": ", tasks[number].index, "}}");
}

/// Opens a channel for a task's output: a pseudo-terminal, so that the task's C library flushes each line, or a pipe
/// if the system has none. Returns false with errno set if both fail.
inline bool open_output(int (&ends)[2]) {
  ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0 && ptsname_r(ends[0], name, sizeof name) == 0) {
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    if (ends[1] >= 0 && tcgetattr(ends[1], &settings) == 0) {
      cfmakeraw(&settings);  // no translation of bytes
      if (tcsetattr(ends[1], TCSANOW, &settings) == 0) return true;
    }
    if (ends[1] >= 0) close(ends[1]);
  }
  if (ends[0] >= 0) close(ends[0]);
  return pipe2(ends, O_CLOEXEC) == 0;
}

/// Copies the output of a task from one descriptor to a file, line by line with a prefix.
class Lines {
 public:
  Lines(int descriptor, std::FILE* out, std::string prefix)
      : descriptor_(descriptor), out_(out), prefix_(std::move(prefix)) {}

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }

  /// Reads the available bytes, and closes the descriptor at end of file.
  void read_some() {
    char bytes[4096];
    const ssize_t size = read(descriptor_, bytes, sizeof bytes);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return finish();
    rest_.append(bytes, static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) print(end);
    if (rest_.size() > 65'536) {  // a line that is too long
      print(rest_.size());
      rest_.clear();
    }
  }
  void finish() {
    if (!rest_.empty()) print(rest_.size());
    rest_.clear();
    if (open()) close(descriptor_);
    descriptor_ = -1;
  }

 private:
  void print(std::size_t length) {
    std::fprintf(out_, "%s%.*s\n", prefix_.c_str(), static_cast<int>(length), rest_.c_str());
    std::fflush(out_);
  }

  int descriptor_;
  std::FILE* out_;
  std::string prefix_;
  std::string rest_;
};

class Launcher {
 public:
  /// `restarts` is the number of earlier starts of the job.
  Launcher(const Options& options, std::size_t restarts, std::FILE* out, std::FILE* err)
      : options_(options), tasks_(tasks_of(options)), restarts_(restarts), out_(out), err_(err) {}

  /// True if a signal requested the end of the job. Such a job is not restarted.
  [[nodiscard]] bool was_told_to_end() const { return told_to_end_; }

  /// Number of restarts of the job and of single tasks.
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

  /// Runs the job. Returns the exit status of the chief, or of the first worker or server that failed, or 0.
  int run() {
    signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, waitpid loses exit statuses
    sigset_t handled;
    sigemptyset(&handled);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&handled, signal);
    sigprocmask(SIG_BLOCK, &handled, &mask_before_);
    const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);

    for (std::size_t i = 0; i < tasks_.size(); ++i) ports_.push_back(dist::net::reserve_port());
    if (options_.secret) secret_ = dist::net::random_secret();
    processes_.resize(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) start(i);
    while (running() > 0) {
      std::vector<pollfd> entries{{signals, POLLIN, 0}};
      for (const Lines& lines : lines_) entries.push_back({lines.descriptor(), POLLIN, 0});
      poll(entries.data(), entries.size(), 100);
      for (std::size_t i = 0; i < lines_.size(); ++i)
        if (lines_[i].open() && entries[i + 1].revents != 0) lines_[i].read_some();
      signalfd_siginfo signal;
      while (read(signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo != SIGCHLD) forward(static_cast<int>(signal.ssi_signo));
      reap();
      if (ending_ && Clock::now() > end_) {
        send_to_all(killing_ ? SIGKILL : SIGTERM);
        killing_ = true;
        end_ = Clock::now() + std::chrono::seconds{2};
      }
    }
    drain();
    close(signals);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    return status_;
  }

 private:
  [[nodiscard]] bool has_chief() const { return options_.servers > 0; }
  [[nodiscard]] std::size_t running() const {
    return static_cast<std::size_t>(
        std::count_if(processes_.begin(), processes_.end(), [](pid_t process) { return process > 0; }));
  }

  void start(std::size_t number) {
    const std::string config = tf_config(tasks_, ports_, number);
    int out[2], err[2];
    if (!open_output(out) || pipe2(err, O_CLOEXEC) != 0) std::abort();
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      setpgid(0, 0);  // a terminal's SIGINT only reaches the launcher, and kill(-pid) the task's children, too
      sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
      dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      setenv("TF_CONFIG", config.c_str(), 1);
      setenv("DIST_RESTARTS", std::to_string(restarts_).c_str(), 1);
      if (!secret_.empty()) setenv("DIST_JOB_SECRET", secret_.c_str(), 1);
      std::vector<char*> arguments;
      for (std::string& argument : options_.command) arguments.push_back(argument.data());
      arguments.push_back(nullptr);
      execvp(arguments[0], arguments.data());
      std::fprintf(stderr, "cannot start %s (%s)\n", arguments[0], strerror(errno));
      _exit(127);
    }
    if (process > 0) setpgid(process, process);  // in parent and child, because either can run first
    close(out[1]);
    close(err[1]);
    for (const auto& [from, to] : {std::pair{out[0], out_}, std::pair{err[0], err_}}) {
      fcntl(from, F_SETFL, O_NONBLOCK);
      lines_.emplace_back(from, to, concat("[", tasks_[number].name(), "] "));
    }
    processes_[number] = process;
    if (process < 0) fail(concat(tasks_[number].name(), " cannot be started (", strerror(errno), ")"), 2);
  }

  void reap() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      int status = 0;
      if (processes_[i] <= 0 || waitpid(processes_[i], &status, WNOHANG) != processes_[i]) continue;
      processes_[i] = 0;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      const std::string end = concat(tasks_[i].name(), " ended with status ", code);
      if (tasks_[i].type == "chief" && code == 0) {
        is_done_ = true;
        begin_end();
      } else if (code != 0 && !(has_chief() && ending_ && i > 0)) {
        if ((has_chief() && tasks_[i].type == "worker") || tasks_[i].type == "evaluator")
          lose(i, end);
        else
          fail(end, code);
      }
    }
  }

  /// Handles the failure of a task that the job can do without.
  void lose(std::size_t number, const std::string& end) {
    const bool comes_back = restarts_ < options_.restarts && !ending_;
    if (comes_back) ++restarts_;
    log_line(comes_back ? concat(end, ". Restarting it (", restarts_, " of ", options_.restarts, ")") : end);
    if (comes_back) start(number);
  }
  void log_line(const std::string& what) const {
    std::fprintf(err_, "dist-run: %s\n", what.c_str());
    std::fflush(err_);
  }

  void fail(const std::string& what, int status) {
    if (status_ != 0) return;
    status_ = status;
    log_line(running() > 0 ? concat(what, ". The other tasks have ", options_.grace, " to exit") : what);
    begin_end();
  }
  void forward(int signal) {
    if (signal != SIGUSR1) told_to_end_ = true;
    send_to_all(signal);
    if (signal != SIGUSR1) begin_end();  // SIGUSR1 requests a report
  }
  /// Skips the evaluator after the chief has finished, because it may still evaluate the last checkpoint.
  void send_to_all(int signal) const {
    for (std::size_t i = 0; i < processes_.size(); ++i)
      if (processes_[i] > 0 && !(is_done_ && !told_to_end_ && tasks_[i].type == "evaluator"))
        kill(-processes_[i], signal);
  }
  void begin_end() {
    if (!ending_) end_ = Clock::now() + options_.grace;
    ending_ = true;
  }

  /// Prints the remaining output. Waits at most 500 ms, because a child process of a task may keep its pipe open.
  void drain() {
    const auto end = Clock::now() + std::chrono::milliseconds{500};
    while (Clock::now() < end &&
           std::any_of(lines_.begin(), lines_.end(), [](const Lines& lines) { return lines.open(); })) {
      std::vector<pollfd> entries;
      for (const Lines& lines : lines_) entries.push_back({lines.descriptor(), POLLIN, 0});
      poll(entries.data(), entries.size(), 50);
      for (std::size_t i = 0; i < lines_.size(); ++i)
        if (lines_[i].open() && entries[i].revents != 0) lines_[i].read_some();
    }
    for (Lines& lines : lines_) lines.finish();
  }

  Options options_;
  std::vector<Task> tasks_;
  std::size_t restarts_;
  std::FILE* out_;
  std::FILE* err_;
  sigset_t mask_before_{};
  std::vector<dist::net::ReservedPort> ports_;  ///< reserved while the job runs
  std::string secret_;
  std::vector<pid_t> processes_;
  std::vector<Lines> lines_;
  int status_ = 0;
  bool told_to_end_ = false;
  bool is_done_ = false;  ///< the chief has exited with status 0
  bool ending_ = false;
  bool killing_ = false;
  Clock::time_point end_;
};

/// Runs the job, and restarts it after a failure at most `options.restarts` times. Returns the status of the last
/// run.
inline int run(const Options& options, std::FILE* out, std::FILE* err) {
  for (std::size_t restarts = 0;; ++restarts) {
    Launcher launcher{options, restarts, out, err};
    const int status = launcher.run();
    restarts = launcher.restarts();
    if (status == 0 || launcher.was_told_to_end() || restarts == options.restarts) return status;
    std::fprintf(err, "dist-run: Restarting all tasks (%zu of %zu)\n", restarts + 1, options.restarts);
    std::fflush(err);
  }
}

}  // namespace dist_run
