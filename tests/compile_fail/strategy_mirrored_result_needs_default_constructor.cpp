// expect: the result of a replica function must be default-constructible: its place is created before the replicas run
#include <dist/strategy/mirrored.hpp>

struct Result {
#ifdef CONTROL
  explicit Result(int given = 0) : number(given) {}
#else
  explicit Result(int given) : number(given) {}
#endif
  int number;
};

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{1};
  return strategy.run([](auto&) { return Result{0}; })[0].number;
}
