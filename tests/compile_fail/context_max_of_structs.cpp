// expect: min and max of a struct, pair or tuple would combine each member separately
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/strategy/default.hpp>

struct Largest {
  double value;
  std::int64_t cell;
};

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    // Arrays and ranges are lists of numbers, and sums are memberwise.
    static_cast<void>(replica.all_reduce(dist::max, std::array{5.0, 3.0}));
    static_cast<void>(replica.all_reduce(dist::max, std::vector{5.0, 3.0}));
    static_cast<void>(replica.all_reduce(dist::sum, Largest{5, 3}));
#else
    static_cast<void>(replica.all_reduce(dist::max, Largest{5, 3}));
#endif
  });
}
