// expect: this loss cannot be used in XLA programs: make its element and slope templates of the number type, an nn::Real, or its per_example a template of the row types, or specialise nn::LossLowering for it
#include <string_view>

#include <dist/nn/hlo/traced_loss.hpp>

struct Difference {
  static constexpr std::string_view name = "difference";
#ifdef CONTROL
  template <class T>
  T element(T output, T target) const {
    return output - target;
  }
  template <class T>
  T slope(T, T) const {
    return T{1};
  }
#else
  float element(float output, float target) const { return output - target; }
  float slope(float, float) const { return 1; }
#endif
};
using X = dist::hlo::Traced<float, 2, 4>;

auto losses(X outputs, X targets) { return dist::nn::traced_losses(Difference{}, 2, outputs, targets); }
