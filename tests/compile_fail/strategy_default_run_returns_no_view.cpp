// expect: a replica function returns a view, whose elements may not outlive the function
#include <span>
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto&) {
    std::vector<int> local(3);
#ifdef CONTROL
    return local;
#else
    return std::span{local};
#endif
  });
}
