#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layout.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/reference/backend.hpp>

namespace dist_test {

/// One layer on rows of shape `In`, with its Operation of the reference back end in double.
template <class Layer, class In>
class BoundLayer {
 public:
  using Bound = typename Layer::template On<In>;
  using Operation = typename Bound::template Operation<dist::nn::Reference, double>;

  std::vector<double> forward(std::vector<double> x, std::vector<std::vector<double>> values = {}) {
    x_ = std::move(x);
    values_ = together(values);
    y_.assign(rows() * Bound::Output::elements, -99);
    operation_.forward(state_, batch(x_, In::shape()), views<const double>(values_), output(y_));
    return y_;
  }

  /// Returns d loss / d x for d loss / d y after `forward`, and sets the parameters' gradients in `gradients`.
  std::vector<double> backward(std::vector<double> dy) {
    std::vector<double> dx(x_.size(), -99);
    constexpr bool adds = dist::nn::detail::AddsParameterGradients<Operation>;
    std::vector<double> all(values_.size(), adds ? 0 : -99);
    operation_.template backward<true>(state_, batch(x_, In::shape()), views<const double>(values_), output(y_),
                                       output(dy), views<double>(all),
                                       dist::TensorView<double>{dx.data(), In::shape().stacked(rows())});
    gradients.clear();
    for (const auto& view : views<double>(all)) gradients.emplace_back(view.data(), view.data() + view.size());
    return dx;
  }

  std::vector<std::vector<double>> gradients;

 private:
  [[nodiscard]] std::size_t rows() const { return x_.size() / In::elements; }
  dist::TensorView<const double> batch(const std::vector<double>& values, dist::Shape row) const {
    return {values.data(), row.stacked(rows())};
  }
  dist::TensorView<double> output(std::vector<double>& values) const {
    return {values.data(), Bound::Output::shape().stacked(rows())};
  }
  /// The parameters, concatenated with a network's padding.
  static std::vector<double> together(const std::vector<std::vector<double>>& lists) {
    std::vector<double> all;
    for (const auto& list : lists) {
      all.insert(all.end(), list.begin(), list.end());
      all.resize(dist::nn::padded(all.size()));
    }
    return all;
  }
  template <class T>
  static auto views(auto& all) {
    return dist::nn::detail::Layout<dist::nn::detail::Learned, std::tuple<Bound>>::template of_layer<0>(
        static_cast<T*>(all.data()));
  }

  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<double> values_;
  dist::nn::Reference::State state_;
  Operation operation_;
};

}  // namespace dist_test
