// A process that runs one test case of the same program. Started by exec, unlike in processes.hpp, so that libraries of
// the program may already have threads.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace support {

/// Runs a test case decorated with doctest::skip(), which runs nowhere else, with `environment` ("NAME=value") in
/// addition to the program's own. Redirects stderr to a file, if given; `options` are doctest's. The destructor kills
/// the process.
class Spawned {
 public:
  Spawned(const std::string& test_case, const std::vector<std::string>& environment,
          const std::string& stderr_file = "", const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments{"/proc/self/exe", "--test-case=" + test_case, "--no-skip", "--minimal"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
    for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!stderr_file.empty())
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, stderr_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                       S_IRUSR | S_IWUSR);
    if (posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), envp.data()) != 0) {
      std::perror("posix_spawn");
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned() { kill(); }

  void signal(int number) const { ::kill(process_, number); }
  void kill() {
    if (process_ < 0) return;
    signal(SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  /// Waits for the exit. Returns the exit status, or -1 after a signal; nothing if the process still runs.
  [[nodiscard]] std::optional<int> exit_status_within(std::chrono::milliseconds longest) {
    const auto end = std::chrono::steady_clock::now() + longest;
    int status = 0;
    while (waitpid(process_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
};

}  // namespace support
