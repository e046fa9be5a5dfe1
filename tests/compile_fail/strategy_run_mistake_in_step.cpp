// expect: no member named 'all_redcue'
// only error
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
#ifdef CONTROL
  const auto step = [](auto& replica, int mine) { return replica.all_reduce(dist::sum, mine); };
  const auto results = strategy.run(step, 1);
#else
  const auto step = [](auto& replica, int mine) { return replica.all_redcue(dist::sum, mine); };
  const auto results = strategy.run(step, 1);
#endif
  return results.size() == 2 ? 0 : 1;
}
