// expect: broadcast of a value returns the root's value and leaves the operand unchanged
// flags: -Werror=unused-result
#include <vector>

#include <dist/strategy/default.hpp>

struct Config {
  int cells;
  double step;
};

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
    Config config{512, 0.1};
    std::vector<double> written(2);
    replica.broadcast(written, 0);
#ifdef CONTROL
    config = replica.broadcast(config, 0);
#else
    replica.broadcast(config, 0);
#endif
    return config.cells;
  });
}
