#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/reference/backend.hpp>

namespace dist_test {

/// One layer on rows of shape `In`, with its Operation by plain loops in double.
template <class Layer, class In>
class PlacedLayer {
 public:
  using Placed = typename Layer::template On<In>;
  static constexpr std::size_t parameters = Placed::parameters.size();

  std::vector<double> forward(std::vector<double> x, std::vector<std::vector<double>> values = {}) {
    x_ = std::move(x);
    values_ = std::move(values);
    y_.assign(rows() * Placed::Output::elements, -99);
    operation_.forward(state_, batch(x_, In::shape()), views<const double>(values_), output(y_));
    return y_;
  }

  /// d loss / d x for d loss / d y after `forward`; the parameters' gradients are in `gradients` afterwards.
  std::vector<double> backward(std::vector<double> dy) {
    std::vector<double> dx(x_.size(), -99);
    gradients.clear();
    for (const auto& value : values_) gradients.emplace_back(value.size(), -99);
    operation_.template backward<true>(state_, batch(x_, In::shape()), views<const double>(values_), output(y_),
                                       output(dy), views<double>(gradients),
                                       dist::TensorView<double>{dx.data(), In::shape().stacked(rows())});
    return dx;
  }

  std::vector<std::vector<double>> gradients;

 private:
  [[nodiscard]] std::size_t rows() const { return x_.size() / In::elements; }
  dist::TensorView<const double> batch(const std::vector<double>& values, dist::Shape row) const {
    return {values.data(), row.stacked(rows())};
  }
  dist::TensorView<double> output(std::vector<double>& values) const {
    return {values.data(), Placed::Output::shape().stacked(rows())};
  }
  template <class T>
  static auto views(auto& lists) {
    dist::nn::ParameterViews<T, parameters> all;
    for (std::size_t which = 0; which < parameters; ++which)
      all[which] = dist::TensorView<T>{lists[which].data(), Placed::parameters[which].shape};
    return all;
  }

  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<std::vector<double>> values_;
  dist::nn::Reference::State state_;
  typename Placed::template Operation<dist::nn::Reference, double> operation_;
};

}  // namespace dist_test
