// expect: scatter operations on a ParameterServer need a variable made with strategy.variable<T>(shape)
#include <dist/parameter_server.hpp>

void add(dist::ParameterServer<dist::Local>& strategy, const dist::IndexedSlices<float>& slices) {
#ifndef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite>({2, 2});
#else
  auto variable = strategy.variable<float>({2, 2});
#endif
  variable.scatter_add(strategy.scope(), slices);
}

int main() {}
