/// For tests with a Python package as reference. These packages are listed in tests/python_packages.txt, and
/// cmake/python_packages installs them into build/python.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

namespace testing {

/// Returns the interpreter: DIST_TEST_PYTHON, else the one of cmake/python_packages, else the system's.
inline std::string python() {
  if (const char* const chosen = std::getenv("DIST_TEST_PYTHON")) return chosen;
  const std::string made = DIST_SOURCE_DIR "/build/python/bin/python";
  return ::access(made.c_str(), X_OK) == 0 ? made : "python3";
}

/// As a constant at namespace scope, exits the program as skipped if Python cannot import `module`.
struct NeedsPython {
  explicit NeedsPython(const std::string& module) {
    const std::string command = python() + " -c 'import " + module + "' >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return;
    std::printf("skipped: %s has no package %s: run cmake/python_packages\n", python().c_str(), module.c_str());
    std::fflush(stdout);
    std::_Exit(77);  // the property SKIP_RETURN_CODE
  }
};

/// Returns the output of a script in tests/, which must succeed.
inline std::string python_output(const std::string& script, const std::string& argument) {
  const std::string command = python() + " " DIST_SOURCE_DIR "/tests/" + script + " '" + argument + "'";
  std::FILE* const stream = ::popen(command.c_str(), "r");
  REQUIRE(stream != nullptr);
  std::string output;
  char block[4096];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, stream)) > 0;) output.append(block, count);
  const int status = ::pclose(stream);
  CAPTURE(output);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return output;
}

}  // namespace testing
