// expect: all_reduce of a value returns the reduction and leaves the operand unchanged
// flags: -Werror=unused-result
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
    double norm = 1;
#ifdef CONTROL
    norm = replica.all_reduce(dist::sum, norm);
#else
    replica.all_reduce(dist::sum, norm);
#endif
    return norm;
  });
}
