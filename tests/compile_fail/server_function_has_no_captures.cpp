// expect: a scheduled function runs in another process, without its captures
#include <dist/server/registry.hpp>

struct Scale {
  float factor;
  float operator()(float x) const { return factor * x; }
};

int main() {
#ifdef CONTROL
  return dist::detail::require_schedulable<Scale>() ? 0 : 1;
#else
  const float factor = 2;
  auto scale = [factor](float x) { return factor * x; };
  return dist::detail::require_schedulable<decltype(scale)>() ? 0 : 1;
#endif
}
