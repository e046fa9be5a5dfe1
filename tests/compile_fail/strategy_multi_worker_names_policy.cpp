// expect: MultiWorker needs a reduction policy: dist::MultiWorker<dist::RingAllReduce>
#include <dist/multi_worker.hpp>

int main() {
#ifdef CONTROL
  dist::MultiWorker<dist::RingAllReduce> strategy{2};
#else
  dist::MultiWorker strategy{2};
#endif
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
