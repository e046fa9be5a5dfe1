#pragma once

#include <cstdio>

#include <dist/core/error.hpp>

namespace bench {

/// Returns the exit status: the result of `program()`, or 1 after it prints the message of a dist::Error.
template <class Program>
int main_of(const Program& program) {
  try {
    return program();
  } catch (const dist::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace bench
