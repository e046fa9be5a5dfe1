// Training data and models for tests of Model: points in a plane, a linear function of two inputs, and the same
// training in plain loops.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/data/dataset.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/dist.hpp>

/// Batches of points (x0, x1) and their values, as views; may report an unknown number of batches.
class Points : public dist::data::DatasetRange<Points> {
 public:
  using Element = dist::data::Example<dist::TensorView<const double>, dist::TensorView<const double>>;
  static constexpr bool is_batched = true;

  Points(std::size_t rows, std::size_t batch,
         dist::data::Cardinality (*tell)(std::size_t) = dist::data::Cardinality::known)
      : batch_(batch), tell_(tell), x_(dist::Shape{rows, 2}), y_(dist::Shape{rows, 1}) {
    for (std::size_t row = 0; row < rows; ++row) {
      x_[2 * row] = std::sin(static_cast<double>(row) * 1.3);
      x_[2 * row + 1] = std::cos(static_cast<double>(row) * 0.7);
      y_[row] = 2 * x_[2 * row] - 3 * x_[2 * row + 1] + 0.5;
    }
  }

  class Iterator {
   public:
    explicit Iterator(const Points& points) : points_(&points) {}
    bool next(Element& element) {
      const std::size_t rows = points_->y_.rows();
      if (row_ == rows) return false;
      const std::size_t count = std::min(points_->batch_, rows - row_);
      element = {points_->x_.view().rows(row_, count), points_->y_.view().rows(row_, count)};
      row_ += count;
      return true;
    }

   private:
    const Points* points_;
    std::size_t row_ = 0;
  };
  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] dist::data::Cardinality cardinality() const { return tell_((y_.rows() + batch_ - 1) / batch_); }

  [[nodiscard]] std::size_t rows() const { return y_.rows(); }
  [[nodiscard]] std::size_t batch() const { return batch_; }
  [[nodiscard]] double x(std::size_t row, std::size_t axis) const { return x_[2 * row + axis]; }
  [[nodiscard]] double y(std::size_t row) const { return y_[row]; }

 private:
  std::size_t batch_;
  dist::data::Cardinality (*tell_)(std::size_t);
  dist::Tensor<double> x_;
  dist::Tensor<double> y_;
};

/// w0 x0 + w1 x1 + w2, starting from zero.
template <class S>
class Linear {
 public:
  struct Outputs {
    dist::TensorView<const double> values;
    dist::TensorView<double> gradient;
  };

  explicit Linear(S& strategy)
      : weights_(strategy.template variable<double>(dist::Shape{3}, 0.0, "weights")),
        slopes_(strategy.template variable<double, dist::OnRead, dist::Sum>(dist::Shape{3}, 0.0, "slopes")),
        replicas_(strategy.num_local_replicas()) {}

  auto& parameters() { return weights_; }
  auto& gradients() { return slopes_; }
  void track(auto& visit) { visit("weights", weights_); }

  Outputs forward(const dist::InReplica auto& replica, dist::TensorView<const double> x) {
    Replica& mine = replicas_[replica.local_index()];
    mine.x = x;
    mine.values.resize(dist::Shape{x.rows(), 1});
    mine.gradient.resize(dist::Shape{x.rows(), 1});
    const auto w = weights_.component(replica);
    for (std::size_t row = 0; row < x.rows(); ++row)
      mine.values[row] = w[0] * x.data()[2 * row] + w[1] * x.data()[2 * row + 1] + w[2];
    return {mine.values.view(), mine.gradient.view()};
  }
  void backward(const dist::InReplica auto& replica, const auto&) {
    const Replica& mine = replicas_[replica.local_index()];
    const auto slopes = slopes_.component(replica);
    slopes[0] = slopes[1] = slopes[2] = 0;
    for (std::size_t row = 0; row < mine.x.rows(); ++row) {
      slopes[0] += mine.gradient[row] * mine.x.data()[2 * row];
      slopes[1] += mine.gradient[row] * mine.x.data()[2 * row + 1];
      slopes[2] += mine.gradient[row];
    }
  }

 private:
  struct alignas(dist::cache_line) Replica {
    dist::TensorView<const double> x;
    dist::Tensor<double> values;
    dist::Tensor<double> gradient;
  };
  dist::DistributedVariable<double, dist::OnWrite, dist::None> weights_;
  dist::DistributedVariable<double, dist::OnRead, dist::Sum> slopes_;
  std::vector<Replica> replicas_;
};

/// The model Linear in plain loops.
struct PlainLinear {
  double weights[3] = {};

  [[nodiscard]] double error(const Points& points, std::size_t row) const {
    return weights[0] * points.x(row, 0) + weights[1] * points.x(row, 1) + weights[2] - points.y(row);
  }
  [[nodiscard]] double mean_squared_error(const Points& points) const {
    double total = 0;
    for (std::size_t row = 0; row < points.rows(); ++row) total += error(points, row) * error(points, row);
    return total / static_cast<double>(points.rows());
  }
  /// Runs one epoch of gradient descent on the mean loss of each batch. Returns the mean over all examples of the loss
  /// in their step.
  double train(const Points& points, double rate) {
    double total = 0;
    for (std::size_t first = 0; first < points.rows(); first += points.batch()) {
      const std::size_t rows = std::min(points.batch(), points.rows() - first);
      double slopes[3] = {};
      for (std::size_t row = first; row < first + rows; ++row) {
        const double e = error(points, row);
        const double slope = 2 * e / static_cast<double>(rows);
        slopes[0] += slope * points.x(row, 0);
        slopes[1] += slope * points.x(row, 1);
        slopes[2] += slope;
        total += e * e;
      }
      for (std::size_t i = 0; i < 3; ++i) weights[i] -= rate * slopes[i];
    }
    return total / static_cast<double>(points.rows());
  }
};
