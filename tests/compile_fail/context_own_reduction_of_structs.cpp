// expect: a reduction of your own combines numbers, not whole structs, pairs or tuples
#include <dist/strategy/default.hpp>

struct Best {
  double value;
  int index;
};

int main() {
  dist::Default strategy;
  // The function takes structs, not numbers.
  const auto larger = dist::reduction([](auto a, auto b) { return a.value < b.value ? b : a; }, 0.0);
  strategy.run([&](auto& replica) {
#ifdef CONTROL
    static_cast<void>(larger);
    static_cast<void>(replica.all_reduce(dist::max, 1.0));
#else
    static_cast<void>(replica.all_reduce(larger, Best{1, 2}));
#endif
  });
}
