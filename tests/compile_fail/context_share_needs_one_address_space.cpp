// expect: share needs all replicas in one address space
#include <dist/strategy/mirrored.hpp>
#include "../support/unshared.hpp"

#ifdef CONTROL
using Ops = dist::ThreadAllReduce;
#else
using Ops = testing::Unshared;
#endif

int main() {
  dist::Mirrored<Ops> strategy{2};
  strategy.run([](auto& replica) {
    int mine = 0;
    replica.share("peek", mine, [](auto&&) {});
  });
}
