#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace testing {

/// The end of a child process, and its output on stderr.
struct Ending {
  bool aborted = false;
  std::string stderr_text;

  [[nodiscard]] bool says(const std::string& part) const { return stderr_text.find(part) != std::string::npos; }
};

/// Calls `body` in a forked child, which exits normally if `body` returns. Requires that this process has only one
/// thread.
template <class Body>
[[nodiscard]] Ending stderr_of(Body&& body) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // replaces the test framework's handler
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  Ending ending;
  std::array<char, 512> block{};
  for (ssize_t count = 0; (count = read(ends[0], block.data(), block.size())) > 0;)
    ending.stderr_text.append(block.data(), static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ending.aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return ending;
}

/// Checks that `call()` terminates its process with this sentence on stderr. Requires that this process has only one
/// thread.
template <class Call>
void refuses(Call&& call, std::string_view sentence) {
  CAPTURE(sentence);
  const Ending ending = stderr_of([&] { static_cast<void>(call()); });
  CAPTURE(ending.stderr_text);
  CHECK(ending.says(std::string{sentence}));
  CHECK(ending.aborted);
}

}  // namespace testing
