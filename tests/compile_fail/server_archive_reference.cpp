// expect: a reference cannot be sent, because its target is in this process
#include <dist/server/archive.hpp>

struct Step {
#ifdef CONTROL
  float rate;
#else
  const float& rate;
#endif
};

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(Step{1}));
#else
  const float rate = 1;
  static_cast<void>(dist::to_bytes(Step{rate}));
#endif
}
