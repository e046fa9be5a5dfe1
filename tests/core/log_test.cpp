#include <dist/core/log.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstddef>
#include <string>

TEST_CASE("a line is printed to stderr at once, with the library's name") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  dist::log_line(dist::concat("worker ", 1, " waits"));
  dup2(before, STDERR_FILENO);
  char said[64];
  const ssize_t size = read(ends[0], said, sizeof said);
  CHECK(std::string(said, static_cast<std::size_t>(size)) == "dist: worker 1 waits\n");
  for (const int end : {ends[0], ends[1], before}) close(end);
}
