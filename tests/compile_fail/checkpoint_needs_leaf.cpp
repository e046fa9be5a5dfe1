// expect: a checkpoint part is a number, or has track(visit), or has shape(), whole(scope) and restore(scope, values)
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
