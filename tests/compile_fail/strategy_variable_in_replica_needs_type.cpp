// expect: a variable needs the type of its elements: strategy.variable<float>(replica, shape)
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    return replica.strategy().template variable<float>(replica, dist::Shape{2})->size();
#else
    return replica.strategy().variable(replica, dist::Shape{2})->size();
#endif
  });
}
