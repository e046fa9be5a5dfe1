// Fits of a linear function to a few examples, compared with plain loops over the same global batches: the results are
// independent of the strategy and of the number of rows per replica.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/train/model.hpp>

namespace random_fits {

namespace nn = dist::nn;

/// The options of one fit.
struct Fit {
  std::uint64_t seed;
  std::size_t rows = 1;
  std::size_t batch = 1;
  std::size_t epochs = 2;
  std::optional<std::size_t> steps_per_epoch{};
  bool repeats = false;  // the dataset is infinite
  bool has_sample_weight = false;
  bool has_class_weight = false;
  bool has_validation = false;
  bool is_sum = false;  // the loss is a sum, not a mean
  bool is_regularized = false;

  [[nodiscard]] std::string describe() const {
    return dist::concat(rows, " rows, batch ", batch, ", ", epochs, " epochs of ", steps_per_epoch.value_or(0),
                        " steps", repeats ? ", repeated" : "", has_sample_weight ? ", sample weights" : "",
                        has_class_weight ? ", class weights" : "", has_validation ? ", validation" : "",
                        is_sum ? ", sum" : "", is_regularized ? ", regularized" : "", " (seed ", seed, ")");
  }
};

/// Pseudo-random numbers that depend only on a seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  /// Returns a number from 0 to `limit` - 1.
  std::size_t below(std::size_t limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((state_ >> 33U) % limit);
  }
  double fraction() { return static_cast<double>(below(2001)) / 1000 - 1; }

 private:
  std::uint64_t state_;
};

inline Fit draw_fit(std::uint64_t seed) {
  Draw draw{seed};
  Fit fit{.seed = seed, .rows = 1 + draw.below(13), .batch = 1 + draw.below(9), .epochs = 1 + draw.below(3)};
  if (draw.below(3) == 0) fit.steps_per_epoch = 1 + draw.below(4);
  fit.repeats = fit.steps_per_epoch && draw.below(2) == 0;
  fit.has_sample_weight = draw.below(2) == 0;
  fit.has_class_weight = draw.below(2) == 0;
  fit.has_validation = draw.below(2) == 0;
  fit.is_sum = draw.below(3) == 0;
  fit.is_regularized = draw.below(3) == 0;
  return fit;
}

constexpr double rate = 0.0625;
constexpr double l2 = 0.125;
constexpr float class_weights[] = {2, 0.5F, 1};

struct Examples {
  explicit Examples(const Fit& fit) : x{{fit.rows, 2}}, y{{fit.rows}}, weight{{fit.rows}} {
    Draw draw{fit.seed + 1000};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = draw.fraction();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(draw.below(3));
    for (std::size_t i = 0; i < y.size(); ++i) weight[i] = static_cast<double>(1 + draw.below(4)) / 2;
  }
  dist::Tensor<double> x;
  dist::Tensor<std::int32_t> y;
  dist::Tensor<double> weight;
};

/// w0 x0 + w1 x1 + w2, starting from (0.5, -0.25, 0).
struct Plain {
  double w[3] = {0.5, -0.25, 0};

  [[nodiscard]] double error(const Examples& of, std::size_t row) const {
    return w[0] * of.x[2 * row] + w[1] * of.x[2 * row + 1] + w[2] - static_cast<double>(of.y[row]);
  }
  [[nodiscard]] double penalty() const { return l2 * (w[0] * w[0] + w[1] * w[1]); }
};

/// The logs of an epoch: the loss, the mean over all examples, and the weighted mean.
struct Shown {
  double loss = 0, mean = 0, weighted = 0;
};
/// The sums of a metric.
struct Tally {
  double loss = 0, squares = 0, weighted = 0, weights = 0, rows = 0;

  void add(const Fit& fit, const Plain& plain, const Examples& of, const std::vector<std::size_t>& batch,
           const std::vector<double>& weight) {
    const auto count = static_cast<double>(batch.size());
    double total = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const double square = plain.error(of, batch[i]) * plain.error(of, batch[i]);
      total += weight[i] * square;
      squares += square;
      weights += weight[i];
    }
    weighted += total;
    loss += count * ((fit.is_sum ? total : total / count) + (fit.is_regularized ? plain.penalty() : 0));
    rows += count;
  }
  [[nodiscard]] Shown shown() const { return {loss / rows, squares / rows, weighted / weights}; }
};

struct Expected {
  std::vector<Shown> epochs, validations;
  Plain plain;
};

/// Computes the results of the fit in plain loops.
inline Expected expected_of(const Fit& fit, const Examples& of) {
  Expected expected;
  Plain& plain = expected.plain;
  std::size_t next = 0;  // row of the pass
  for (std::size_t epoch = 0; epoch < fit.epochs; ++epoch) {
    Tally tally;
    const std::size_t batches = (fit.rows + fit.batch - 1) / fit.batch;
    const bool starts_anew = !fit.steps_per_epoch || (!fit.repeats && *fit.steps_per_epoch == batches);
    if (starts_anew) next = 0;
    for (std::size_t step = 0; step < fit.steps_per_epoch.value_or(batches); ++step) {
      std::vector<std::size_t> batch;
      while (batch.size() < fit.batch && (fit.repeats || next < fit.rows)) batch.push_back(next++ % fit.rows);
      if (batch.empty()) break;
      std::vector<double> weight;
      for (const std::size_t row : batch)
        weight.push_back((fit.has_sample_weight ? of.weight[row] : 1) *
                         (fit.has_class_weight ? double{class_weights[of.y[row]]} : 1));
      tally.add(fit, plain, of, batch, weight);
      double slope[3] = {};
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const double s =
            2 * weight[i] * plain.error(of, batch[i]) / (fit.is_sum ? 1 : static_cast<double>(batch.size()));
        slope[0] += s * of.x[2 * batch[i]];
        slope[1] += s * of.x[2 * batch[i] + 1];
        slope[2] += s;
      }
      for (std::size_t i = 0; i < 3; ++i)
        plain.w[i] -= rate * (slope[i] + (fit.is_regularized && i < 2 ? 2 * l2 * plain.w[i] : 0));
    }
    if (tally.rows == 0) break;  // the data have ended
    expected.epochs.push_back(tally.shown());
    if (fit.has_validation) {  // on all examples, without class weights
      Tally validation;
      for (std::size_t first = 0; first < fit.rows; first += fit.batch) {
        std::vector<std::size_t> batch;
        std::vector<double> weight;
        for (std::size_t row = first; row < std::min(first + fit.batch, fit.rows); ++row) {
          batch.push_back(row);
          weight.push_back(fit.has_sample_weight ? of.weight[row] : 1);
        }
        validation.add(fit, plain, of, batch, weight);
      }
      expected.validations.push_back(validation.shown());
    }
    if (!starts_anew && !fit.repeats && next == fit.rows) {
      // An incomplete epoch is the last one.
      const std::size_t steps_so_far = (epoch + 1) * *fit.steps_per_epoch;
      if (steps_so_far > batches) break;
    }
  }
  return expected;
}

template <class S, class L>
void check_fit(S& strategy, const Fit& fit, const L& loss) {
  const Examples examples{fit};
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>, nn::Reference, double> net{strategy};
  net.assign_parameter(strategy.scope(), "dense/kernel", std::vector<double>{0.5, -0.25});
  const nn::MeanOf<nn::MeanSquaredError> mean{.name = "mean"};
  nn::Model model{strategy, net,  nn::SGD{.learning_rate = static_cast<float>(rate)},
                  loss,     mean, nn::Weighted{nn::MeanOf<nn::MeanSquaredError>{.name = "by_weight"}}};
  typename decltype(model)::FitOptions options{
      .epochs = fit.epochs, .steps_per_epoch = fit.steps_per_epoch, .verbose = 0};
  if (fit.has_class_weight) options.class_weight.assign(std::begin(class_weights), std::end(class_weights));
  const auto run = [&](const auto& slices) {
    if (fit.has_validation) options.validation = slices | dist::data::batch(fit.batch);
    if (fit.repeats) return model.fit(slices | dist::data::repeat() | dist::data::batch(fit.batch), std::move(options));
    return model.fit(slices | dist::data::batch(fit.batch), std::move(options));
  };
  const nn::History history = fit.has_sample_weight
                                  ? run(dist::data::TensorSlices{std::tuple{examples.x, examples.y, examples.weight}})
                                  : run(dist::data::TensorSlices{std::tuple{examples.x, examples.y}});

  const Expected expected = expected_of(fit, examples);
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-10); };
  const auto check_series = [&](const std::string& prefix, const std::vector<Shown>& shown) {
    REQUIRE(history[prefix + "loss"].size() == shown.size());
    for (std::size_t epoch = 0; epoch < shown.size(); ++epoch) {
      CHECK(history[prefix + "loss"][epoch] == near(shown[epoch].loss));
      CHECK(history[prefix + "mean"][epoch] == near(shown[epoch].mean));
      CHECK(history[prefix + "by_weight"][epoch] == near(shown[epoch].weighted));
    }
  };
  check_series("", expected.epochs);
  if (fit.has_validation) check_series("val_", expected.validations);
  const auto kernel = net.parameter(strategy.scope(), "dense/kernel");
  CHECK(kernel[0] == near(expected.plain.w[0]));
  CHECK(kernel[1] == near(expected.plain.w[1]));
  CHECK(net.parameter(strategy.scope(), "dense/bias")[0] == near(expected.plain.w[2]));
}

/// Runs DIST_TEST_FITS fits (default 30) under `strategy`, each with its own seed.
template <class S>
void check_fits(S& strategy) {
  const std::string description = strategy.describe();
  CAPTURE(description);
  const char* const asked = std::getenv("DIST_TEST_FITS");
  const std::uint64_t fits = asked == nullptr ? 30 : std::strtoull(asked, nullptr, 10);
  for (std::uint64_t seed = 0; seed < fits; ++seed) {
    const Fit fit = draw_fit(seed);
    const std::string which = fit.describe();
    CAPTURE(which);
    const nn::Reduced sum{nn::MeanSquaredError{}, nn::Reduction::Sum{}};
    const nn::L2 regularizer{static_cast<float>(l2)};
    if (fit.is_sum && fit.is_regularized)
      check_fit(strategy, fit, nn::Regularized{sum, regularizer});
    else if (fit.is_sum)
      check_fit(strategy, fit, sum);
    else if (fit.is_regularized)
      check_fit(strategy, fit, nn::Regularized{nn::MeanSquaredError{}, regularizer});
    else
      check_fit(strategy, fit, nn::MeanSquaredError{});
  }
}

}  // namespace random_fits
