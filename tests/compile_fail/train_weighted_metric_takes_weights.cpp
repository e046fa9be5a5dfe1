// expect: a metric in nn::Weighted receives outputs, targets and a tensor of one weight per row
#include <string_view>

#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

struct Rows {
  using Tally = nn::Tally<double, double>;
  std::string_view name = "rows";
#ifdef CONTROL
  Tally operator()(const auto&, const auto& targets, const auto&) const { return of(targets); }
#else
  Tally operator()(const auto&, const auto& targets) const { return of(targets); }
#endif
  static Tally of(const auto& targets) { return {static_cast<double>(targets.rows()), 1}; }
};

int main() {
  dist::Default strategy;
  Net net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}, nn::Weighted{Rows{}}};
  dist::Tensor<float> x{dist::Shape{8, 4}};
  dist::Tensor<std::int64_t> y{dist::Shape{8}};
  dist::Tensor<float> weights{dist::Shape{8}};
  model.test_on_batch(x, y, weights);
}
