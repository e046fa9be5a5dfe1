// expect: this policy works between threads, and the workers of MultiWorker are processes
#include <dist/multi_worker.hpp>

int main() {
#ifdef CONTROL
  dist::MultiWorker<dist::RingAllReduce> strategy{2};
#else
  dist::MultiWorker<dist::ThreadAllReduce> strategy{2};
#endif
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
