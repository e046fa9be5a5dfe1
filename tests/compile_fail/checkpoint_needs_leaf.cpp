// expect: what a checkpoint keeps has track(visit), or shape(), whole(scope) and restore(scope, values), or is a number
#include <string>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  dist::Checkpoint checkpoint{strategy};
#ifdef CONTROL
  int name = 0;
#else
  std::string name = "a";
#endif
  checkpoint.add("name", name);
}
