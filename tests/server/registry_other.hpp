// Shared by the two translation units of registry_test.cpp.
#pragma once

#include <dist/server/registry.hpp>

namespace registry_test {

struct Context {
  int offset = 0;
};
using Table = dist::FunctionTable<int(int)>;
using Invocations = dist::FunctionTable<dist::Invocation<Context>>;

/// Instantiated by both units.
template <class T>
int shared(T x) {
  return 300 + x;
}

struct Numbers {
  dist::FunctionId function, lambda, shared;
};
Numbers numbers_of_other_unit();

}  // namespace registry_test
