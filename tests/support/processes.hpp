// Forked processes of a test: each runs a function, and none outlives the test.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

namespace support {

/// Returns the exit status, or 128 + the signal that killed the process.
inline int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/// Children of the test; the destructor kills running ones.
class Processes {
 public:
  /// Starts `count` processes, each of which exits with `body(rank)`, or 99 if that throws.
  template <class Body>
  Processes(std::size_t count, Body&& body) {
    std::fflush(nullptr);
    for (std::size_t rank = 0; rank < count; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        int status = 99;
        try {
          status = body(rank);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "process %zu: %s\n", rank, error.what());
        }
        std::fflush(nullptr);
        _exit(status);
      }
      children_.push_back(child);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const pid_t child : children_)
      if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
      }
  }

  [[nodiscard]] pid_t operator[](std::size_t rank) const { return children_[rank]; }

  /// Returns the statuses in order; 124 for processes that run longer than `longest`, which are killed.
  std::vector<int> wait(std::chrono::seconds longest = std::chrono::seconds{60}) {
    const auto end = std::chrono::steady_clock::now() + longest;
    std::vector<int> statuses(children_.size(), 124);
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      pid_t ended = 0;
      while ((ended = waitpid(children_[rank], &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
      if (ended != children_[rank]) continue;
      statuses[rank] = status_of(status);
      children_[rank] = -1;
    }
    return statuses;
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace support
