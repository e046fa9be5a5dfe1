// expect: Mirrored<Ops> needs cross-device ops that work between threads, such as ThreadAllReduce or
#include <dist/strategy/mirrored.hpp>

struct NoOps {};

int main() {
#ifdef CONTROL
  dist::Mirrored<dist::ThreadAllReduce> strategy{1};
#else
  dist::Mirrored<NoOps> strategy{1};
#endif
  return strategy.num_replicas_in_sync() == 1 ? 0 : 1;
}
