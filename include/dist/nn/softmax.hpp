#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// Sets y = exp(x) / sum(exp(x)) over a row, which may be x, without overflow: the maximum is subtracted first.
template <class Threads, class X, class Y>
DIST_HD void softmax(const Threads& row, X x, Y y) {
  using std::exp;
  const auto largest = max_of(row, [&](auto k) { return x[k]; });
  for_each_of(row, [&](auto k) { y[k] = exp(x[k] - largest); });
  auto share = sum_of(row, [&](auto k) { return y[k]; });
  share = 1 / share;
  for_each_of(row, [&](auto k) { y[k] = y[k] * share; });
}
template <class T>
struct SoftmaxOfRow {
  const T* x;
  T* y;
  std::size_t size;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    softmax(threads, x + row * size, y + row * size);
  }
};
/// dx = y * (dy - sum(y * dy)); dx may be dy.
template <class T>
struct SoftmaxGradientOfRow {
  const T* y;
  const T* dy;
  T* dx;
  std::size_t size;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    const std::size_t first = row * size;
    const T mean = sum_of(threads, [&](auto k) { return y[first + k] * dy[first + k]; });
    for_each_of(threads, [&](auto k) { dx[first + k] = y[first + k] * (dy[first + k] - mean); });
  }
};

template <class Backend, std::size_t Classes, class T>
concept HasSoftmax = requires {
  typename Backend::template Softmax<Classes, T>;
};
/// The back end's operation if it has one, else the formula.
template <class Backend, std::size_t Classes, class T>
class SoftmaxKernel {
  using State = typename Backend::State;

 public:
  void forward(State& state, ViewOn<Backend, const T> x, ViewOn<Backend, T> y) {
    for_each_row<Backend>(state, x.size() / Classes, Classes, SoftmaxOfRow<T>{x.data(), y.data(), Classes});
  }
  void input_gradient(State& state, ViewOn<Backend, const T> y, ViewOn<Backend, const T> dy, ViewOn<Backend, T> dx) {
    for_each_row<Backend>(state, y.size() / Classes, Classes,
                          SoftmaxGradientOfRow<T>{y.data(), dy.data(), dx.data(), Classes});
  }
};
template <class Backend, std::size_t Classes, class T>
  requires HasSoftmax<Backend, Classes, T>
class SoftmaxKernel<Backend, Classes, T> : public Backend::template Softmax<Classes, T> {
};

}  // namespace dist::nn::detail
