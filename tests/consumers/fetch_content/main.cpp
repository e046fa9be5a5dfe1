#include <dist/dist.hpp>

int main() {
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{2};
  auto ids = strategy.run([](auto& replica) { return replica.replica_id(); });
  return strategy.num_replicas_in_sync() == 2 && strategy.local_results(ids).size() == 2 ? 0 : 1;
}
