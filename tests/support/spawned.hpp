// A process that runs one test case of the same program. It is started by exec, unlike those of processes.hpp, so that
// the program may have had threads of libraries before.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace support {

/// Runs a case that is decorated with doctest::skip(), so that it runs nowhere else, and sees `environment` ("NAME=value")
/// besides the program's own. Killed at the end of the object.
class Spawned {
 public:
  Spawned(const std::string& test_case, const std::vector<std::string>& environment) {
    std::vector<std::string> arguments{"/proc/self/exe", "--test-case=" + test_case, "--no-skip", "--minimal"};
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
    for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
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

 private:
  pid_t process_ = -1;
};

}  // namespace support
