// expect: a reduction's function cannot have state
#include <dist/core/reduce_op.hpp>

int main() {
  const float weight = 2;
#ifdef CONTROL
  const auto op = dist::reduction([](float a, float b) { return a + b; }, 0);
  return static_cast<int>(op(1.0f, 2.0f) + weight) == 5 ? 0 : 1;
#else
  const auto op = dist::reduction([weight](float a, float b) { return a + weight * b; }, 0);
  return static_cast<int>(op.start);
#endif
}
