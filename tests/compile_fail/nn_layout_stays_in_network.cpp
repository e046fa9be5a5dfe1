// expect: an optimizer stores the layout() of its network
#include <span>
#include <vector>

#include <dist/nn/tracked_parts.hpp>

namespace nn = dist::nn;

struct Net {
  std::vector<nn::Parameter> places{{"dense", 0, "bias", {3}, 0}};
#ifdef CONTROL
  [[nodiscard]] std::span<const nn::Parameter> layout() const { return places; }
#else
  [[nodiscard]] std::vector<nn::Parameter> layout() const { return places; }
#endif
};

int main() {
  const Net net;
  return nn::detail::layout_of(net).size() == 1 ? 0 : 1;
}
