// expect: dist::reduction combines numbers, not whole structs, pairs or tuples
#include <dist/strategy/default.hpp>

struct Best {
  double value;
  int index;
};

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    const auto larger = dist::reduction([](double a, double b) { return a < b ? b : a; }, 0.0);
    static_cast<void>(replica.all_reduce(larger, 1.0));
#else
    const auto larger = dist::reduction([](Best a, Best b) { return a.value < b.value ? b : a; }, Best{0, -1});
    static_cast<void>(replica.all_reduce(larger, Best{1, 2}));
#endif
  });
}
