#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/chain.hpp>
#include <support/on_host.hpp>

#include <doctest/doctest.h>

namespace dist_test {

/// Returns `count` numbers between -0.5 and 0.5.
inline std::vector<double> numbers(std::size_t count, std::uint64_t stream) {
  const dist::RandomStream random{7, stream};
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform<double>(i) - 0.5;
  return values;
}

template <class To>
std::vector<To> converted(const std::vector<double>& from) {
  return std::vector<To>(from.begin(), from.end());
}

/// Memory and a queue on the first device of a back end.
template <class Backend>
class Bench {
  using Device = typename Backend::Device;

 public:
  /// Elements in device memory, freed by the destructor.
  template <class T>
  class Elements {
   public:
    using Span = typename Device::template Span<T>;
    Elements(Bench& bench, const std::vector<T>& values)
        : bench_(bench), size_(values.size()), at_(bench.memory_.allocate(bytes())) {
      bench.queue().copy(std::span<const T>{values}, span());
    }
    Elements(const Elements&) = delete;
    Elements& operator=(const Elements&) = delete;
    ~Elements() { bench_.memory_.release(at_, bytes()); }

    [[nodiscard]] Span span() const { return Span{reinterpret_cast<T*>(bench_.memory_.at(0, at_)), size_}; }

   private:
    [[nodiscard]] std::size_t bytes() const { return (size_ + 1) * sizeof(T); }
    Bench& bench_;
    std::size_t size_;
    std::size_t at_;
  };

  [[nodiscard]] typename Device::Queue queue() const { return queues_[0]; }

 private:
  static constexpr std::array<std::size_t, 1> first_device{0};
  typename Device::Memory memory_{std::span<const std::size_t>{first_device}};
  typename Device::Queues queues_{std::span<const std::size_t>{first_device}, std::chrono::seconds{60}};
};

/// One forward and backward pass. The loss is sum(target_i * y_i + y_i^2 / 2) with fixed targets.
struct Pass {
  double loss = 0;
  std::vector<double> outputs;
  std::vector<double> gradients;
};

/// Runs a pass on the bench whose queue the workspace uses. Without `targets` it generates them.
template <class Net, class Backend, class T>
Pass pass(Bench<Backend>& bench, dist::nn::Workspace<Net, Backend, T>& workspace, const std::vector<double>& parameters,
          const std::vector<double>& batch, std::vector<double> targets = {}) {
  using Elements = typename Bench<Backend>::template Elements<T>;
  const auto queue = bench.queue();
  const Elements weights{bench, converted<T>(parameters)};
  const Elements images{bench, converted<T>(batch)};
  const dist::nn::ViewOn<Backend, const T> x{
      images.span().data(), Net::InputShape::shape().stacked(batch.size() / Net::InputShape::elements)};
  const auto y = workspace.forward(weights.span(), x);
  REQUIRE(y.values.shape() == Net::OutputShape::shape().stacked(x.rows()));
  REQUIRE(y.gradient.shape() == y.values.shape());
  if (targets.empty()) targets = numbers(y.values.size(), 3);
  const auto values = support::on_host(queue, y.values);
  std::vector<T> slopes;
  Pass result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    result.outputs.push_back(value);
    result.loss += targets[i] * value + value * value / 2;
    slopes.push_back(static_cast<T>(targets[i] + value));
  }
  queue.copy(std::span<const T>{slopes}, y.gradient.elements());
  // Gradients are overwritten.
  const Elements gradients{bench, std::vector<T>(Net::padded_count, T{99})};
  workspace.backward(weights.span(), gradients.span());
  const auto computed = support::on_host(queue, gradients.span());
  // Padding is not part of a parameter.
  for (const dist::nn::Parameter& parameter : Net::parameters)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
      result.gradients.push_back(static_cast<double>(computed[parameter.offset + i]));
  return result;
}
/// Runs a pass on the host.
template <class Net, class Backend, class T>
Pass pass(dist::nn::Workspace<Net, Backend, T>& workspace, const std::vector<double>& parameters,
          const std::vector<double>& batch) {
  Bench<Backend> bench;
  return pass(bench, workspace, parameters, batch);
}

/// Compares the gradients of all parameters of `Net` in double with central differences of the loss.
template <class Net, class Backend>
void check_gradients(std::size_t rows) {
  Bench<Backend> bench;
  dist::nn::Workspace<Net, Backend, double> workspace{bench.queue()};
  auto parameters = numbers(Net::padded_count, 1);
  const auto batch = numbers(rows * Net::InputShape::elements, 2);
  const Pass analytic = pass(bench, workspace, parameters, batch);
  std::size_t index = 0;
  for (const dist::nn::Parameter& parameter : Net::parameters)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i, ++index) {
      constexpr double step = 1e-5;
      double& changed = parameters[parameter.offset + i];
      const double before = changed;
      changed = before + step;
      const double above = pass(bench, workspace, parameters, batch).loss;
      changed = before - step;
      const double below = pass(bench, workspace, parameters, batch).loss;
      changed = before;
      const double numeric = (above - below) / (2 * step);
      CAPTURE(parameter.name());
      CAPTURE(i);
      CHECK(std::abs(analytic.gradients[index] - numeric) <= 1e-6 * std::fmax(1.0, std::abs(numeric)));
    }
  CHECK(index == Net::parameter_count);
}

/// Returns the largest difference of two lists, relative to the largest number of the second.
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 1e-30;
  double apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::fmax(largest, std::abs(b[i]));
    apart = std::fmax(apart, std::isnan(a[i]) ? 1e300 : std::abs(a[i] - b[i]));
  }
  return apart / largest;
}

/// Compares a back end in float with another in double, over a sequence of batch sizes with the same workspaces.
template <class Net, class Backend, class Oracle>
void check_against(std::initializer_list<std::size_t> batches) {
  Bench<Backend> bench;
  Bench<Oracle> oracle_bench;
  dist::nn::Workspace<Net, Backend, float> workspace{bench.queue()};
  dist::nn::Workspace<Net, Oracle, double> oracle{oracle_bench.queue()};
  // Rounded to float first, so that both compute with the same numbers.
  const auto round = [](const std::vector<double>& values) {
    const auto rounded = converted<float>(values);
    return std::vector<double>(rounded.begin(), rounded.end());
  };
  const auto parameters = round(numbers(Net::padded_count, 1));
  for (const std::size_t rows : batches) {
    CAPTURE(rows);
    const auto batch = round(numbers(rows * Net::InputShape::elements, 2 + rows));
    const Pass mine = pass(bench, workspace, parameters, batch);
    const Pass expected = pass(oracle_bench, oracle, parameters, batch);
    CHECK(difference(mine.outputs, expected.outputs) < 1e-5);
    CHECK(difference(mine.gradients, expected.gradients) < 1e-5);
  }
}

}  // namespace dist_test
