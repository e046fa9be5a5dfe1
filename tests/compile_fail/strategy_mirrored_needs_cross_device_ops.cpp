// expect: Mirrored<Ops> needs cross-device ops that work between threads, such as SharedMemoryAllReduce or
#include <dist/comm/self.hpp>
#include <dist/strategy/mirrored.hpp>

struct NoOps {
  template <class Communicator>
  using On = dist::SelfCollectives;
};

int main() {
#ifdef CONTROL
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{1};
#else
  dist::Mirrored<NoOps> strategy{1};
#endif
  return strategy.num_replicas_in_sync() == 1 ? 0 : 1;
}
