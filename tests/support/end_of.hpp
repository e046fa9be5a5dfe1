#pragma once

#include <unistd.h>

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <support/processes.hpp>

namespace support {

struct End {
  int status;
  std::string said;
  std::chrono::milliseconds took;
};

/// Returns the exit status and stderr of a process that runs `body()`.
template <class Body>
End end_of(Body&& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto start = std::chrono::steady_clock::now();
  support::Processes process(1, [&](std::size_t) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    body();
    return 0;
  });
  close(ends[1]);
  End end{process.wait()[0], {}, {}};
  end.took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  char part[512];
  for (ssize_t length = 0; (length = read(ends[0], part, sizeof(part))) > 0;)
    end.said.append(part, static_cast<std::size_t>(length));
  close(ends[0]);
  return end;
}

}  // namespace support
