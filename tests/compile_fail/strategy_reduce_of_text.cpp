// expect: reduce combines numbers, tensors, and structures of these
#include <string>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const dist::PerReplica<int> values(2);
#else
  const dist::PerReplica<std::string> values(2);
#endif
  static_cast<void>(strategy.reduce(dist::sum, values));
}
