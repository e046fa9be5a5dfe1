// Commit subjects follow the rules of CONTRIBUTING.md, which cmake/hooks/commit-msg checks.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <regex>
#include <sstream>
#include <string>

#include "gates/files.hpp"

namespace {

/// The exit status and standard output of a shell command that runs in the repository's folder.
struct Outcome {
  int status;
  std::string output;
};
Outcome run(const std::string& command) {
  FILE* pipe = popen(("cd '" + gates::source_dir().string() + "' && " + command).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  std::array<char, 4096> block;
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), pipe)) output.append(block.data(), count);
  return {pclose(pipe), output};
}

bool is_accepted(const std::string& subject) {
  return run("printf '%s\\n' '" + subject + "' | cmake/hooks/commit-msg 2>/dev/null").status == 0;
}

}  // namespace

TEST_CASE("commit-msg accepts an area and an imperative sentence of at most 72 characters") {
  CHECK(is_accepted("comm: share one barrier between levels"));
  CHECK(is_accepted("server, strategy: process rows"));
  CHECK(is_accepted("data: embed rows"));
  CHECK(is_accepted("Revert \"comm: share one barrier\""));
  CHECK(is_accepted("nn: add " + std::string(64, 'x')));
}

TEST_CASE("commit-msg rejects long subjects, subjects without an area, and other forms of the verb") {
  CHECK_FALSE(is_accepted("nn: add " + std::string(65, 'x')));
  CHECK_FALSE(is_accepted("share one barrier"));
  CHECK_FALSE(is_accepted("Comm: share one barrier"));
  CHECK_FALSE(is_accepted("comm: shared one barrier"));
  CHECK_FALSE(is_accepted("comm: sharing one barrier"));
  CHECK_FALSE(is_accepted("comm: shares one barrier"));
  CHECK_FALSE(is_accepted("comm: what is shared"));
  CHECK_FALSE(is_accepted("comm: share one barrier."));
}

TEST_CASE("all commits after the base commit in CONTRIBUTING.md have accepted subjects") {
  const std::string page = gates::read_file(gates::source_dir() / "CONTRIBUTING.md");
  std::smatch named;
  REQUIRE(std::regex_search(page, named, std::regex("all commits after `([0-9a-f]{8,40})`")));
  const auto [status, subjects] = run("git log --no-merges --format=%s " + named[1].str() + "..HEAD 2>/dev/null");
  if (status != 0) {
    MESSAGE("this copy of the repository does not have the history since ", named[1].str());
    return;
  }
  std::istringstream lines{subjects};
  for (std::string subject; std::getline(lines, subject);) {
    std::string quoted = subject;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) quoted.replace(at, 1, "'\\''");
    if (!is_accepted(quoted)) FAIL_CHECK("cmake/hooks/commit-msg rejects: ", subject);
  }
}
