// expect: no member named 'all_redcue'
// only error
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
#ifdef CONTROL
  const auto merge = [](auto& scope, const auto&) { return scope.strategy().num_replicas_in_sync(); };
  const auto results = strategy.run([&](auto& replica) { return replica.merge_call(merge, 1); });
#else
  const auto merge = [](auto& scope, const auto&) { return scope.all_redcue(); };
  const auto results = strategy.run([&](auto& replica) { return replica.merge_call(merge, 1); });
#endif
  return results.size() == 2 ? 0 : 1;
}
