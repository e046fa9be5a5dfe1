// expect: Mirrored needs a reduction policy: dist::Mirrored<dist::ThreadAllReduce>
#include <dist/strategy/mirrored.hpp>

int main() {
#ifdef CONTROL
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
#else
  dist::Mirrored strategy{2};
#endif
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
