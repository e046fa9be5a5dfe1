// expect: merge_call calls its function with the cross-replica context by reference, then with the PerReplica of each argument
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) {
#ifdef CONTROL
    replica.merge_call([](auto&, const dist::PerReplica<int>&) {}, 1);
#else
    replica.merge_call([](auto&, int) {}, 1);
#endif
  });
}
