// expect: a pointer to a function is valid only in this process: write dist::function<f>
#include <dist/server/registry.hpp>

float twice(float x) { return 2 * x; }

int main() {
#ifdef CONTROL
  return dist::detail::require_schedulable<dist::Function<twice>>() && dist::function<twice>(2.0f) == 4.0f ? 0 : 1;
#else
  return dist::detail::require_schedulable<decltype(&twice)>() ? 0 : 1;
#endif
}
