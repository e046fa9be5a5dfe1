#include <dist/nn/layers/batch_normalization.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using dist_test::difference;
using dist_test::numbers;
using List = std::vector<double>;

namespace {

using PerReplica = nn::PerReplicaStatistics;
using Synchronized = nn::SynchronizedStatistics;

template <class Statistics>
using DenseNet = nn::Sequential<nn::Input<3>, nn::Dense<4>, nn::BatchNormalization<Statistics>, nn::Dense<2, nn::Relu>,
                                nn::Dense<2>>;
template <class Statistics>
using ImageNet = nn::Sequential<nn::Input<4, 4, 1>, nn::BatchNormalization<Statistics>, nn::Conv2D<2, 3>,
                                nn::BatchNormalization<Statistics>, nn::Flatten, nn::Dense<2>>;

struct Options : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
  static constexpr double epsilon = 0.01;
};
struct Sample : nn::BatchNormalizationOptions {
  static constexpr bool sample_variance = true;
};

/// The results of all replicas, in the order of their rows.
struct Result {
  double loss = 0;
  List outputs;
  List gradients;
  List moving;
};

List copied(auto&& span) { return List(span.begin(), span.end()); }

/// Runs a network in double under a strategy. The loss is sum(target_i * y_i + y_i^2 / 2) over the rows of all
/// replicas, so it does not depend on the distribution of rows.
template <class Net, class Strategy>
class Trial {
 public:
  Trial(Strategy& strategy, std::vector<std::size_t> rows) : strategy_(strategy), rows_(std::move(rows)) {}

  /// Runs one pass with these parameters; gradients are summed over the replicas, without padding.
  template <class Mode = nn::Training>
  Result operator()(const List& parameters, const List& batch, Mode mode = {}) {
    struct Part {
      List outputs;
      List gradients;
    };
    constexpr std::size_t in = Net::InputShape::elements;
    constexpr std::size_t out = Net::OutputShape::elements;
    const dist::TensorView<const double> weights{parameters.data(), dist::Shape{parameters.size()}};
    net_.parameters().assign(strategy_.scope(), weights);
    std::vector<Part> parts(rows_.size());
    strategy_.run([&](auto& replica) {
      std::size_t first = 0;
      for (std::size_t r = 0; r < replica.local_index(); ++r) first += rows_[r];
      const std::size_t rows = rows_[replica.local_index()];
      const dist::TensorView<const double> x{batch.data() + first * in, Net::InputShape::shape().stacked(rows)};
      const auto y = net_.forward(replica, x, mode);
      const List targets = numbers(1000, 3);
      for (std::size_t i = 0; i < y.values.size(); ++i) y.gradient[i] = targets[first * out + i] + y.values[i];
      net_.backward(replica, 0);
      parts[replica.local_index()] = {copied(y.values.elements()), copied(net_.gradients().component(replica))};
    });
    Result result;
    List sum(Net::padded_count, 0.0);
    for (const Part& part : parts) {
      result.outputs.insert(result.outputs.end(), part.outputs.begin(), part.outputs.end());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part.gradients[i];
    }
    for (const nn::Parameter& parameter : Net::parameters)
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
        result.gradients.push_back(sum[parameter.offset + i]);
    const List targets = numbers(1000, 3);
    for (std::size_t i = 0; i < result.outputs.size(); ++i)
      result.loss += targets[i] * result.outputs[i] + result.outputs[i] * result.outputs[i] / 2;
    const auto moving = net_.state().read(strategy_.scope());
    for (const nn::Parameter& tensor : Net::state)
      for (std::size_t i = 0; i < tensor.shape.elements(); ++i)
        result.moving.push_back(moving.data()[tensor.offset + i]);
    return result;
  }

  nn::Network<Net, nn::Reference, double>& network() { return net_; }

 private:
  Strategy& strategy_;
  std::vector<std::size_t> rows_;
  nn::Network<Net, nn::Reference, double> net_{strategy_};
};

const std::vector<std::vector<std::size_t>> divisions{{5}, {3, 2}, {1, 4}, {2, 0, 3}, {1, 2, 1, 1}};

/// Checks the summed gradients against central differences of the summed loss.
template <class Net>
void check_differences(const std::vector<std::size_t>& rows, auto mode) {
  CAPTURE(rows.size());
  Mirrored strategy{rows.size()};
  Trial<Net, Mirrored> trial{strategy, rows};
  List parameters = numbers(Net::padded_count, 1);
  const List batch = numbers(5 * Net::InputShape::elements, 2);
  const List gradients = trial(parameters, batch, mode).gradients;
  std::size_t index = 0;
  for (const nn::Parameter& parameter : Net::parameters)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i, ++index) {
      constexpr double step = 1e-5;
      double& changed = parameters[parameter.offset + i];
      const double before = changed;
      changed = before + step;
      const double above = trial(parameters, batch, mode).loss;
      changed = before - step;
      const double below = trial(parameters, batch, mode).loss;
      changed = before;
      const double numeric = (above - below) / (2 * step);
      CAPTURE(parameter.name());
      CAPTURE(i);
      CHECK(std::abs(gradients[index] - numeric) <= 1e-6 * std::fmax(1.0, std::abs(numeric)));
    }
}

/// Runs the layer without a network, on one replica.
template <class Layer, class In, class T = double>
class Alone {
 public:
  using Bound = typename Layer::template On<In>;
  static constexpr std::size_t channels = Bound::channels;

  template <class Mode = nn::Training>
  std::vector<T> forward(const std::vector<T>& x, Mode = {}) {
    x_ = x;
    y_.assign(x.size(), T(-99));
    strategy_.run([&](auto& replica) {
      using Call = nn::LayerCall<std::remove_cvref_t<decltype(replica)>, Mode, dist::Accumulator<T>, 2>;
      operation_.forward(Call{replica, {view(moving_mean), view(moving_variance)}}, state_, batch(x_), parameters(),
                         view(y_, rows()));
    });
    return y_;
  }
  std::vector<T> backward(std::vector<T> dy) {
    std::vector<T> dx(dy.size(), T(-99));
    strategy_.run([&](auto& replica) {
      operation_.template backward<true>(replica, state_, batch(x_), parameters(), batch(y_), view(dy, rows()),
                                         {view(gamma_gradient), view(beta_gradient)}, view(dx, rows()));
    });
    return dx;
  }

  std::vector<T> gamma = std::vector<T>(channels, T(1));
  std::vector<T> beta = std::vector<T>(channels, T(0));
  std::vector<T> gamma_gradient = std::vector<T>(channels);
  std::vector<T> beta_gradient = std::vector<T>(channels);
  std::vector<dist::Accumulator<T>> moving_mean = std::vector<dist::Accumulator<T>>(channels, 0);
  std::vector<dist::Accumulator<T>> moving_variance = std::vector<dist::Accumulator<T>>(channels, 1);

 private:
  [[nodiscard]] std::size_t rows() const { return x_.size() / In::elements; }
  template <class E>
  static dist::TensorView<E> view(std::vector<E>& elements) {
    return {elements.data(), dist::Shape{elements.size()}};
  }
  static dist::TensorView<T> view(std::vector<T>& elements, std::size_t rows) {
    return {elements.data(), In::shape().stacked(rows)};
  }
  dist::TensorView<const T> batch(const std::vector<T>& elements) const {
    return {elements.data(), In::shape().stacked(rows())};
  }
  nn::ParameterViews<const T, 2> parameters() const {
    return {dist::TensorView<const T>{gamma.data(), dist::Shape{channels}},
            dist::TensorView<const T>{beta.data(), dist::Shape{channels}}};
  }

  dist::Default strategy_;
  std::vector<T> x_;
  std::vector<T> y_;
  nn::Reference::State state_;
  typename Bound::template Operation<nn::Reference, T> operation_;
};

}  // namespace

TEST_CASE("BatchNormalization matches Keras 3.15, in training and inference") {
  Alone<nn::BatchNormalization<>, dist::StaticShape<2>> layer;
  layer.gamma = {1.5, -2};
  layer.beta = {0.25, 3};
  const List first{1, 10, 2, -20, 4, 30, 9, 0.5};
  const List second{5.5, 1.25, 3, 16, 2, -9, 1.5, 6};  // the rows of `first` in reverse order, halved, plus one
  // Keras computes statistics in float.
  CHECK(difference(layer.forward(first), {-1.20991587639, 2.45816421509, -0.723277270794, 5.79253768921, 0.25,
                                          0.235248327255, 2.68319320679, 3.51404905319}) < 1e-6);
  CHECK(difference(layer.forward(second), {2.68280959129, 3.51404666901, 0.25, 0.235261440277, -0.723123788834,
                                           5.79252481461, -1.20968568325, 2.45816659927}) < 1e-6);
  CHECK(difference(layer.moving_mean, {0.0696000009775, 0.0863624960184}) < 1e-6);
  CHECK(difference(layer.moving_variance, {1.097900033, 4.99518108368}) < 1e-6);
  CHECK(difference(layer.forward(first, nn::inference), {1.58131825924, -5.87041568756, 3.01222777367, 20.9726543427,
                                                         5.87404680252, -23.7657966614, 13.028594017, 2.62988996506}) <
        1e-6);
}

TEST_CASE("BatchNormalization of images with other options matches Keras 3.15") {
  Alone<nn::BatchNormalization<PerReplica, Options>, dist::StaticShape<2, 2, 2>> layer;
  const List x{0, 1, 4, 2, 2, 4, 1, 0, 1, 4, 2, 2, 4, 1, 0, 1};
  CHECK(difference(layer.forward(x),
                   {-1.18052065372, -0.639970302582, 1.51781237125, 0.0914243459702, 0.168645858765, 1.55421364307,
                    -0.50593739748, -1.37136495113, -0.50593739748, 1.55421364307, 0.168645858765, 0.0914243459702,
                    1.51781237125, -0.639970302582, -1.18052065372, -0.639970302582}) < 1e-6);
  CHECK(difference(layer.moving_mean, {0.175, 0.1875}) < 1e-6);
  CHECK(difference(layer.moving_variance, {1.11875, 1.0859375}) < 1e-6);
}

TEST_CASE("the moving variance follows the sample variance if requested") {
  Alone<nn::BatchNormalization<PerReplica, Sample>, dist::StaticShape<1>> layer;
  static_cast<void>(layer.forward({1, 2, 4, 9}));  // squared differences from the mean 4: 9 + 4 + 0 + 25
  CHECK(layer.moving_variance[0] == doctest::Approx(0.99 * 1 + 0.01 * 38 / 3));
  layer.moving_variance[0] = 1;
  static_cast<void>(layer.forward({7}));  // a single element has no sample variance
  CHECK(layer.moving_variance[0] == doctest::Approx(0.99));
}

TEST_CASE("BatchNormalization of a constant channel returns beta") {
  Alone<nn::BatchNormalization<>, dist::StaticShape<1>> layer;
  layer.beta = {0.5};
  CHECK(layer.forward({0.1, 0.1, 0.1}) == List{0.5, 0.5, 0.5});
  for (const double slope : layer.backward({1, 2, 3})) CHECK(std::isfinite(slope));
}

TEST_CASE("a variance that rounding makes negative is treated as zero (spec P20)") {
  Alone<nn::BatchNormalization<>, dist::StaticShape<1>> layer;
  for (int i = 1; i <= 32; ++i) {
    const double large = 1e9 + 0.37 * i;  // its square is rounded to multiples of 128
    for (const double y : layer.forward({large, large, large})) CHECK(std::isfinite(y));
    CHECK(layer.moving_variance[0] >= 0);
  }
}

TEST_CASE("BatchNormalization propagates NaN") {
  Alone<nn::BatchNormalization<>, dist::StaticShape<1>> layer;
  CHECK(std::isnan(layer.forward({1, NAN, 2})[0]));
  CHECK(std::isnan(layer.moving_mean[0]));
  CHECK(std::isnan(layer.moving_variance[0]));
}

TEST_CASE_TEMPLATE("BatchNormalization of 16-bit numbers computes in float (spec P20)", T, dist::Float16,
                   dist::BFloat16) {
  Alone<nn::BatchNormalization<>, dist::StaticShape<1>, T> layer;
  // The squares exceed the range of Float16, and 1/100 of the moving mean is below the precision of both types.
  const auto y = layer.forward({T(256), T(512), T(768), T(1024)});
  const double deviation = 128 * std::sqrt(5.0);
  for (int i = 0; i < 4; ++i)
    CHECK(static_cast<double>(y[static_cast<std::size_t>(i)]) ==
          doctest::Approx((i * 256 - 384) / deviation).epsilon(std::is_same_v<T, dist::Float16> ? 1e-3 : 8e-3));
  CHECK(layer.moving_mean[0] == doctest::Approx(6.4));
  CHECK(layer.moving_variance[0] == doctest::Approx(0.99 + 0.01 * deviation * deviation));
  CHECK(static_cast<double>(layer.backward({T(1), T(1), T(1), T(1)})[2]) == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE_TEMPLATE("gradients through BatchNormalization agree with central differences (spec P19, P20)", Statistics,
                   PerReplica, Synchronized) {
  for (const auto& rows : divisions) {
    check_differences<DenseNet<Statistics>>(rows, nn::training);
    check_differences<ImageNet<Statistics>>(rows, nn::training);
  }
}

TEST_CASE("gradients in inference treat the moving statistics as constants") {
  for (const auto& rows : divisions) check_differences<DenseNet<PerReplica>>(rows, nn::inference);
}

TEST_CASE_TEMPLATE("synchronized replicas compute the same as one replica with all rows (spec P20)", Net,
                   DenseNet<Synchronized>, ImageNet<Synchronized>) {
  const List parameters = numbers(Net::padded_count, 1);
  const List batch = numbers(5 * Net::InputShape::elements, 2);
  dist::Default one;
  Trial<Net, dist::Default> alone{one, {5}};
  const Result expected = alone(parameters, batch);
  for (const auto& rows : divisions) {
    CAPTURE(rows.size());
    Mirrored strategy{rows.size()};
    Trial<Net, Mirrored> trial{strategy, rows};
    const Result together = trial(parameters, batch);
    CHECK(difference(together.outputs, expected.outputs) < 1e-12);
    CHECK(difference(together.gradients, expected.gradients) < 1e-12);
    if (rows.size() != 3)
      CHECK(difference(together.moving, expected.moving) < 1e-12);  // with 3 replicas, one has no rows
  }
}

TEST_CASE("with one replica, local and synchronized statistics agree") {
  const List batch = numbers(15, 2);
  const List parameters = numbers(DenseNet<PerReplica>::padded_count, 1);
  dist::Default one;
  Trial<DenseNet<PerReplica>, dist::Default> local{one, {5}};
  Trial<DenseNet<Synchronized>, dist::Default> synchronized{one, {5}};
  CHECK(local(parameters, batch).outputs == synchronized(parameters, batch).outputs);
}

namespace {

/// Counts the collective calls of a replica.
struct Counting {
  static inline int calls = 0;
  static void combine(const dist::InReplica auto&, std::span<double>) { ++calls; }
};

}  // namespace

TEST_CASE(
    "synchronized statistics take one collective call per forward, and per backward with input gradient (spec P20)") {
  dist::Default one;
  const auto calls_of = [&]<class Net>(Trial<Net, dist::Default> trial, std::size_t elements, auto mode) {
    Counting::calls = 0;
    static_cast<void>(trial(numbers(Net::padded_count, 1), numbers(elements, 2), mode));
    return Counting::calls;
  };
  using First = nn::Sequential<nn::Input<3>, nn::BatchNormalization<Counting>>;
  CHECK(calls_of(Trial<DenseNet<Counting>, dist::Default>{one, {5}}, 15, nn::training) == 2);
  CHECK(calls_of(Trial<DenseNet<Counting>, dist::Default>{one, {0}}, 0, nn::training) == 2);
  CHECK(calls_of(Trial<First, dist::Default>{one, {5}}, 15, nn::training) == 1);
  CHECK(calls_of(Trial<DenseNet<Counting>, dist::Default>{one, {5}}, 15, nn::inference) == 0);
}

TEST_CASE("moving statistics follow each replica's batch, and are the mean outside of replica functions (spec P19)") {
  using Net = nn::Sequential<nn::Input<1>, nn::BatchNormalization<>>;
  Mirrored strategy{2};
  nn::Network<Net, nn::Reference, double> net{strategy};
  const auto own = strategy.run([&](auto& replica) {
    const List x = replica.local_index() == 0 ? List{1, 3} : List{10, 20, 30};
    static_cast<void>(net.forward(replica, dist::TensorView<const double>{x.data(), dist::Shape{x.size(), 1}}));
    return net.template state<0, 0>(replica)[0];
  });
  CHECK(own[0] == doctest::Approx(0.01 * 2));
  CHECK(own[1] == doctest::Approx(0.01 * 20));
  const auto state = net.state().read(strategy.scope());
  CHECK(net.state_layout()[0].name() == "batch_normalization/moving_mean");
  CHECK(net.state_layout()[1].name() == "batch_normalization/moving_variance");
  CHECK(state[net.state_layout()[0].offset] == doctest::Approx(0.01 * 11));
  CHECK(state[net.state_layout()[1].offset] == doctest::Approx(0.99 + 0.01 * (1 + 200.0 / 3) / 2));
  CHECK_FALSE(net.state().trainable());
}

TEST_CASE_TEMPLATE("moving statistics follow only batches with rows, on one replica or on all (spec P21)", Statistics,
                   PerReplica, Synchronized) {
  using Net = nn::Sequential<nn::Input<1>, nn::Dense<1>, nn::BatchNormalization<Statistics>>;
  Mirrored strategy{3};
  nn::Network<Net, nn::Reference, double> net{strategy};
  const dist::Tensor<double> x{dist::Shape{4, 1}};
  const auto step = [&](std::array<std::size_t, 3> rows) {
    return strategy.run([&](auto& replica) {
      const auto y = net.forward(replica, x.view().rows(0, rows[replica.local_index()]));
      for (double& slope : y.gradient.elements()) slope = 1;
      net.backward(replica, 0);
      for (const double gradient : net.gradients().component(replica)) CHECK(std::isfinite(gradient));
      return net.template state<1, 1>(replica)[0];
    });
  };
  const auto variances = step({2, 0, 4});  // the inputs are zeros: 0.99 * 1 + 0.01 * 0
  CHECK(variances[0] == doctest::Approx(0.99));
  CHECK(variances[1] == doctest::Approx(std::is_same_v<Statistics, Synchronized> ? 0.99 : 1));
  CHECK(variances[2] == doctest::Approx(0.99));
  const auto none = step({0, 0, 0});
  for (std::size_t replica = 0; replica < 3; ++replica) CHECK(none[replica] == variances[replica]);
}

TEST_CASE("inference changes no statistics, and does not communicate") {
  Mirrored strategy{2};
  nn::Network<DenseNet<Synchronized>> net{strategy};
  const dist::Tensor<float> x{dist::Shape{2, 3}};
  strategy.run([&](auto& replica) {
    if (replica.local_index() == 0) static_cast<void>(net.forward(replica, x, nn::inference));
  });
  const auto state = net.state().read(strategy.scope());
  CHECK(state[0] == 0);
  CHECK(state[net.state_layout()[1].offset] == 1);
}

TEST_CASE_TEMPLATE(
    "with a single copy of each variable, moving statistics are the mean of the replicas' updates (spec G45, P19)",
    Statistics, PerReplica, Synchronized) {
  using Net = DenseNet<Statistics>;
  const List parameters = numbers(Net::padded_count, 1);
  const List batch = numbers(15, 2);
  for (const auto& rows : divisions) {
    CAPTURE(rows.size());
    Mirrored mirrored{rows.size()};
    dist::CentralStorage<dist::Cpu> central{rows.size()};
    Trial<Net, Mirrored> copies{mirrored, rows};
    Trial<Net, dist::CentralStorage<dist::Cpu>> one{central, rows};
    const Result expected = copies(parameters, batch);
    const Result first = one(parameters, batch);
    CHECK(first.outputs == expected.outputs);
    CHECK(first.gradients == expected.gradients);
    CHECK(difference(first.moving, expected.moving) < 1e-14);
    // The mean of the updates is the update of the mean, unless a replica without rows keeps its own copy.
    const double apart = difference(one(parameters, batch).moving, copies(parameters, batch).moving);
    CHECK((apart < 1e-14) == (rows.size() != 3 || std::is_same_v<Statistics, Synchronized>));
    CHECK(one(parameters, batch, nn::inference).outputs.size() == 10);
  }
}
