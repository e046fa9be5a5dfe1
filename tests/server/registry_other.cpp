// The second translation unit of registry_test.cpp: a lambda, a function and a template of the same names.
#include "server/registry_other.hpp"

namespace {

int same_name(int x) { return 200 + x; }

}  // namespace

namespace registry_test {

Numbers numbers_of_other_unit() {
  auto lambda = [](Context& context, int x) { return context.offset + 2000 + x; };
  return {Table::number<&same_name>(), Invocations::number<&dist::invoke<Context, decltype(lambda), int>>(),
          Table::number<&shared<int>>()};
}

}  // namespace registry_test
