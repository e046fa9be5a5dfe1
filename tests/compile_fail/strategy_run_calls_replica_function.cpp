// expect: run calls its function with the replica context by reference, then with the replica's part of each argument
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  strategy.run([](dist::Default::Context&, int) {}, 1);
#else
  strategy.run([](dist::Default::Context&) {}, 1);
#endif
}
