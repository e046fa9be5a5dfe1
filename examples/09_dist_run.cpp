// A launcher for one machine: starts N processes of a program, each with its TF_CONFIG, as an operator does for many.
//
//   dist-run -n N [--restarts R] [--secret] program arguments...
//   dist-run --ps P --workers N [--restarts R] [--secret] program arguments...
//
// Each line that worker 1 prints appears behind "[worker 1] ". SIGINT, SIGTERM and SIGUSR1 go to all. The status is that
// of the worker that failed first; the others then have ten seconds to end, and are killed. --restarts starts all workers
// again after a failure, at most R times; DIST_RESTARTS tells them how often that was done. --secret makes a job secret,
// so that nobody else can join.
//
// With --ps there are P parameter servers and a chief, too, which coordinates the job: it lasts as long as the chief, and
// has its status. A worker that fails does not end it, and is started again by itself. A server that fails ends the job,
// because its variables are lost: all tasks are started again. Both count as restarts. Without arguments the launcher checks
// itself.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
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
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>

#include "check.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using dist::text;

struct Options {
  std::size_t workers = 0;
  std::size_t servers = 0;
  std::size_t restarts = 0;
  bool secret = false;
  std::chrono::milliseconds grace{10'000};
  std::vector<std::string> command;
};

/// "127.0.0.1:PORT" for each task. No other program gets these ports while this one lives: its own sockets stay bound to them.
/// A task may listen there, because all of these sockets have SO_REUSEADDR.
std::vector<std::string> free_addresses(std::size_t count) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int on = 1;
    if (setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::fprintf(stderr, "dist-run: no free port (%s)\n", strerror(errno));
      std::exit(2);
    }
    addresses.push_back(text("127.0.0.1:", ntohs(address.sin_port)));
  }
  return addresses;
}

/// A task of the cluster, as TF_CONFIG names it.
struct Task {
  std::string type;
  std::size_t index;

  [[nodiscard]] std::string name() const { return text(type, " ", index); }
};

/// The chief, where there are servers, first.
std::vector<Task> tasks_of(const Options& options) {
  std::vector<Task> tasks;
  if (options.servers > 0) tasks.push_back({"chief", 0});
  for (std::size_t i = 0; i < options.servers; ++i) tasks.push_back({"ps", i});
  for (std::size_t i = 0; i < options.workers; ++i) tasks.push_back({"worker", i});
  return tasks;
}

/// That of task `number`.
std::string tf_config(const std::vector<Task>& tasks, const std::vector<std::string>& addresses, std::size_t number) {
  std::string cluster;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].index > 0)
      cluster += ", ";
    else
      cluster += text(i == 0 ? "" : "], ", '"', tasks[i].type, "\": [");
    cluster += text('"', addresses[i], '"');
  }
  return text("{\"cluster\": {", cluster, "]}, \"task\": {\"type\": \"", tasks[number].type,
              "\", \"index\": ", tasks[number].index, "}}");
}

std::string random_secret() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
  std::string digits;
  for (const unsigned char byte : bytes) (digits += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 15];
  return digits;
}

/// Two ends for what a task prints. They are a terminal's, so that the task's C library passes each line on at once, and a
/// pipe's where the system gives no terminal. False with errno set if there is neither.
bool open_output(int (&ends)[2]) {
  ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0 && ptsname_r(ends[0], name, sizeof name) == 0) {
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    if (ends[1] >= 0 && tcgetattr(ends[1], &settings) == 0) {
      cfmakeraw(&settings);  // bytes pass unchanged
      if (tcsetattr(ends[1], TCSANOW, &settings) == 0) return true;
    }
    if (ends[1] >= 0) close(ends[1]);
  }
  if (ends[0] >= 0) close(ends[0]);
  return pipe2(ends, O_CLOEXEC) == 0;
}

/// What a task prints on one descriptor, line by line.
class Lines {
 public:
  Lines(int descriptor, std::FILE* out, std::string prefix)
      : descriptor_(descriptor), out_(out), prefix_(std::move(prefix)) {}

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }

  /// Takes what there is; closes at its end.
  void read_some() {
    char bytes[4096];
    const ssize_t size = read(descriptor_, bytes, sizeof bytes);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return finish();
    rest_.append(bytes, static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) print(end);
    if (rest_.size() > 65'536) {  // a line without an end
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
  /// Of a job that was started `restarts` times before.
  Launcher(const Options& options, std::size_t restarts, std::FILE* out, std::FILE* err)
      : options_(options), tasks_(tasks_of(options)), restarts_(restarts), out_(out), err_(err) {}

  /// Whether a signal asked the job to end: then it is not started again.
  [[nodiscard]] bool was_told_to_end() const { return told_to_end_; }

  /// How often the job, or a single task of it, was started again.
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

  /// The status of the chief, or of the worker or server that failed first, or 0.
  int run() {
    signal(SIGCHLD, SIG_DFL);  // where it is ignored nobody hears of the workers' ends
    sigset_t handled;
    sigemptyset(&handled);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&handled, signal);
    sigprocmask(SIG_BLOCK, &handled, &mask_before_);
    const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);

    addresses_ = free_addresses(tasks_.size());
    if (options_.secret) secret_ = random_secret();
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
    const std::string config = tf_config(tasks_, addresses_, number);
    int out[2], err[2];
    if (!open_output(out) || pipe2(err, O_CLOEXEC) != 0) std::abort();
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      setpgid(0, 0);  // so that a terminal's SIGINT comes once, from us, and what a task starts gets all signals too
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
    if (process > 0) setpgid(process, process);  // who of the two comes first
    close(out[1]);
    close(err[1]);
    for (const auto& [from, to] : {std::pair{out[0], out_}, std::pair{err[0], err_}}) {
      fcntl(from, F_SETFL, O_NONBLOCK);
      lines_.emplace_back(from, to, text("[", tasks_[number].name(), "] "));
    }
    processes_[number] = process;
    if (process < 0) fail(text(tasks_[number].name(), " does not start (", strerror(errno), ")"), 2);
  }

  void reap() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      int status = 0;
      if (processes_[i] <= 0 || waitpid(processes_[i], &status, WNOHANG) != processes_[i]) continue;
      processes_[i] = 0;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      const std::string end = text(tasks_[i].name(), " ended with status ", code);
      if (tasks_[i].type == "chief" && code == 0) {
        begin_end();
      } else if (code != 0 && !(has_chief() && ending_ && i > 0)) {
        if (has_chief() && tasks_[i].type == "worker")
          lose(i, end);
        else
          fail(end, code);
      }
    }
  }

  /// A worker without which the chief goes on.
  void lose(std::size_t number, const std::string& end) {
    const bool comes_back = restarts_ < options_.restarts;
    if (comes_back) ++restarts_;
    say(comes_back ? text(end, "; starts it again, restart ", restarts_, " of ", options_.restarts) : end);
    if (comes_back) start(number);
  }
  void say(const std::string& what) const {
    std::fprintf(err_, "dist-run: %s\n", what.c_str());
    std::fflush(err_);
  }

  void fail(const std::string& what, int status) {
    if (status_ != 0) return;
    status_ = status;
    const double seconds = static_cast<double>(options_.grace.count()) / 1e3;
    say(running() > 0 ? text(what, "; the others have ", seconds, " s to end") : what);
    begin_end();
  }
  void forward(int signal) {
    send_to_all(signal);
    if (signal == SIGUSR1) return;  // a question
    told_to_end_ = true;
    begin_end();
  }
  void send_to_all(int signal) const {
    for (const pid_t process : processes_)
      if (process > 0) kill(-process, signal);
  }
  void begin_end() {
    if (!ending_) end_ = Clock::now() + options_.grace;
    ending_ = true;
  }

  /// The last lines. A helper process of the job may keep a pipe open for a little longer than its task lived.
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
  std::vector<std::string> addresses_;
  std::string secret_;
  std::vector<pid_t> processes_;
  std::vector<Lines> lines_;
  int status_ = 0;
  bool told_to_end_ = false;
  bool ending_ = false;
  bool killing_ = false;
  Clock::time_point end_;
};

/// Runs the job, and again after a failure as often as the options allow. The status is that of the last time.
int run(const Options& options, std::FILE* out, std::FILE* err) {
  for (std::size_t restarts = 0;; ++restarts) {
    Launcher launcher{options, restarts, out, err};
    const int status = launcher.run();
    restarts = launcher.restarts();
    if (status == 0 || launcher.was_told_to_end() || restarts == options.restarts) return status;
    std::fprintf(err, "dist-run: starts all tasks again, restart %zu of %zu\n", restarts + 1, options.restarts);
    std::fflush(err);
  }
}

/// Runs a shell script as all tasks, and gives what they print.
std::string printed_by(std::size_t workers, const char* script, int expected_status, std::size_t restarts = 0,
                       std::size_t servers = 0) {
  std::FILE* out = std::tmpfile();
  const Options options{workers, servers, restarts, true, std::chrono::milliseconds{200}, {"/bin/sh", "-c", script}};
  const int status = run(options, out, out);
  std::string printed(static_cast<std::size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  printed.resize(std::fread(printed.data(), 1, printed.size(), out));
  std::fclose(out);
  check(status == expected_status, "the status is that of the chief, or of the worker that failed first");
  return printed;
}

bool contains(const std::string& all, std::string_view part) { return all.find(part) != std::string::npos; }

/// A job with servers lasts as long as its chief.
void check_servers() {
  const std::string all = printed_by(2, "echo \"$TF_CONFIG\"", 0, 0, 1);
  std::printf("%s", all.c_str());
  check(contains(all, "[chief 0] {\"cluster\": {\"chief\": [\"127.0.0.1:"), "the chief is first");
  check(contains(all, "\"], \"ps\": [\"127.0.0.1:") && contains(all, "\"], \"worker\": [\"127.0.0.1:"),
        "all are named");
  check(contains(all, "\"task\": {\"type\": \"chief\", \"index\": 0}}\n"), "the chief knows what it is");

  const auto by_type = [](std::string_view of_chief, std::string_view of_server, std::string_view of_worker) {
    return text("case $TF_CONFIG in *'type\": \"chief'*) ", of_chief, ";; *'type\": \"ps'*) ", of_server, ";; *) ",
                of_worker, ";; esac");
  };
  const std::string lasting = "while :; do sleep 0.1; done";
  const auto start = Clock::now();
  check(!contains(printed_by(1, by_type("exit 0", lasting, lasting).c_str(), 0, 0, 2), "dist-run:"),
        "who works when the chief has ended is told to end");
  check(Clock::now() - start < std::chrono::seconds{30}, "and soon");

  const std::string lost = printed_by(1, by_type("sleep 0.5; exit 3", lasting, "exit 9").c_str(), 3, 0, 1);
  check(contains(lost, "dist-run: worker 0 ended with status 9\n"), "a worker that fails is named");
  check(contains(lost, "dist-run: chief 0 ended with status 3"), "and does not end the job");

  const std::string back = printed_by(
      1, by_type("sleep 1", lasting, "echo start $DIST_RESTARTS; [ $DIST_RESTARTS = 1 ] || exit 9; " + lasting).c_str(),
      0, 1, 1);
  check(contains(back, "worker 0 ended with status 9; starts it again, restart 1 of 1\n[worker 0] start 1\n"),
        "a worker that fails is started again by itself");

  const std::string again = printed_by(1,
                                       by_type("[ $DIST_RESTARTS = 1 ] || { sleep 1; exit 75; }",
                                               "[ $DIST_RESTARTS = 1 ] || { sleep 0.2; exit 9; }; " + lasting, lasting)
                                           .c_str(),
                                       0, 1, 1);
  check(contains(again, "dist-run: ps 0 ended with status 9; the others have") &&
            contains(again, "dist-run: starts all tasks again, restart 1 of 1\n"),
        "a lost server is one restart of the whole job");
}

int check_itself() {
  signal(SIGCHLD, SIG_IGN);  // as whoever starts the launcher may have done
  const std::string configs = printed_by(3, "echo \"$TF_CONFIG\"; echo secret of ${#DIST_JOB_SECRET} >&2", 0);
  std::printf("%s", configs.c_str());
  for (const std::size_t worker : {0U, 1U, 2U}) {
    check(contains(configs, text("[worker ", worker, "] {\"cluster\": {\"worker\": [\"127.0.0.1:")),
          "lines have a prefix");
    check(contains(configs, text("\"task\": {\"type\": \"worker\", \"index\": ", worker, "}}\n")), "indices differ");
    check(contains(configs, text("[worker ", worker, "] secret of 64\n")), "a secret of 32 bytes is given");
  }

  const auto start = Clock::now();
  const std::string failed =
      printed_by(2, "case $TF_CONFIG in *'index\": 1'*) exit 7;; esac; trap '' TERM; while :; do sleep 1; done", 7);
  std::printf("%s", failed.c_str());
  check(contains(failed, "dist-run: worker 1 ended with status 7"), "who failed is said");
  check(Clock::now() - start < std::chrono::seconds{30}, "who does not end is killed");

  check(contains(printed_by(2,
                            "case $TF_CONFIG in *'index\": 1'*) sleep 1; exit 7;; esac;"
                            "(trap 'echo told; exit' TERM; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done) & wait",
                            7),
                 "[worker 0] told\n"),
        "what a worker started is told to end, too");

  const std::string at_once = printed_by(
      2, "case $TF_CONFIG in *'index\": 0'*) yes | head -n 100000 | tail -n 1; test -t 1 && echo lines;; esac", 0);
  check(contains(at_once, "[worker 0] y\n[worker 0] lines\n"), "a task writes to a terminal, line by line");

  check(contains(printed_by(1, "printf 'no end'; exit 0", 0), "[worker 0] no end\n"),
        "a last line without an end is kept");

  const char* third_time = "echo restart $DIST_RESTARTS; [ $DIST_RESTARTS = 2 ] || exit 5";
  check(contains(printed_by(1, third_time, 0, 2), "[worker 0] restart 2\n"), "a job that fails is started again");
  check(contains(printed_by(1, third_time, 5, 1), "restart 1 of 1"), "not more often than is asked for");
  check_servers();
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: dist-run -n N [--restarts R] [--secret] program arguments...\n"
               "       dist-run --ps P --workers N [--restarts R] [--secret] program arguments...\n");
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) return check_itself();
  Options options;
  int next = 1;
  for (; next < count && arguments[next][0] == '-'; ++next) {
    const std::string_view option = arguments[next];
    if (option == "--secret") {
      options.secret = true;
      continue;
    }
    std::size_t* const value = option == "-n" || option == "--workers" ? &options.workers
                               : option == "--ps"                      ? &options.servers
                               : option == "--restarts"                ? &options.restarts
                                                                       : nullptr;
    if (value == nullptr || next + 1 == count) return usage();
    char* end = nullptr;
    const char* const written = arguments[++next];
    const long number = std::strtol(written, &end, 10);
    if (end == written || *end != '\0' || number < (option == "--restarts" ? 0 : 1) || number > 1024) return usage();
    *value = static_cast<std::size_t>(number);
  }
  options.command.assign(arguments + next, arguments + count);
  if (options.workers == 0 || options.command.empty()) return usage();
  return run(options, stdout, stderr);
}
