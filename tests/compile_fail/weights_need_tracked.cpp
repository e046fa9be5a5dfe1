// expect: weights belong to an object that names its parts by track(visit), such as an nn::Network
#include <dist/checkpoint/save_weights.hpp>
#include <dist/strategy/default.hpp>

struct Parts {
#ifdef CONTROL
  void track(auto& visit) { visit("epoch", epoch); }
#endif
  int epoch = 0;
};

int main() {
  dist::Default strategy;
  Parts parts;
  dist::save_weights(strategy, parts, "weights.npz");
}
