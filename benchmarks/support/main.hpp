#pragma once

#include <cstdio>

#include <dist/core/error.hpp>

namespace bench {

/// What main returns: that of `program()`, or 1 where it throws one of our errors, which is printed in a line.
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
