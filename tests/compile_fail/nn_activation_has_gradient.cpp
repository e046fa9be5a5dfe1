// expect: the activation of a layer must be a type with the static functions apply(x), and gradient(y, y_gradient) or
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Half {
  static double apply(double x) { return x / 2; }
#ifdef CONTROL
  static double gradient(double, double y_gradient) { return y_gradient / 2; }
#endif
};

using Net = nn::Sequential<nn::Input<4>, nn::Dense<2, Half>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
