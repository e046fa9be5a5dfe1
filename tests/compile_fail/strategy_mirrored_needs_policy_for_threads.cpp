// expect: this policy works between processes, and the replicas of Mirrored are threads
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
#ifdef CONTROL
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
#else
  dist::Mirrored<dist::NodeAllReduce> strategy{2};
#endif
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
