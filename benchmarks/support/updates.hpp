#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/nn/optimizer.hpp>

#include "clock.hpp"

/// Ways to reduce and apply gradients, on CPUs and GPUs. Gradients are written before each call (not timed). The
/// slowest replica counts, from an empty queue to an empty queue.
namespace bench {

namespace nn = dist::nn;

/// Writes a part of a replica's gradient in a round. The sums over the replicas are exact.
struct WriteGradient {
  float* to;
  float unit;
  float base;
  DIST_HD void operator()(std::size_t i) const { to[i] = unit * (base + static_cast<float>(static_cast<int>(i % 16))); }
};
/// Enqueues the writes on the replica's queue.
void write_gradient(const auto& replica, const auto& gradient, unsigned round, float share) {
  const float base = static_cast<float>(round % 8) + static_cast<float>(replica.local_index()) - 6.5f;
  replica.for_each(gradient.size(), WriteGradient{gradient.data(), share / 1024, base});
}

struct Scale {
  float* values;
  float factor;
  DIST_HD void operator()(std::size_t i) const { values[i] *= factor; }
};

/// Seconds of `part(replica)` on the slowest replica. All start together after `prepare(replica)`.
template <class Strategy, class Prepare, class Part>
double time_of(Strategy& strategy, const Prepare& prepare, const Part& part) {
  return strategy.reduce(dist::max, strategy.run([&](auto& replica) {
    prepare(replica);
    replica.queue().wait();
    replica.barrier();
    const double start = seconds();
    part(replica);
    replica.queue().wait();
    return seconds() - start;
  }));
}

/// The members of a network that an optimizer needs.
template <class Strategy>
struct ParametersOnly {
  using Parameters = decltype(std::declval<Strategy&>().template variable<float>(dist::Shape{}));
  using Gradients = decltype(std::declval<Strategy&>().template buffer<float>(dist::Shape{}));
  Parameters all_parameters;
  Gradients all_gradients;

  ParametersOnly(Strategy& strategy, std::size_t count)
      : all_parameters(strategy.template variable<float>(dist::Shape{count}, 1.0f, "parameters")),
        all_gradients(strategy.template buffer<float>(dist::Shape{count}, "gradients")) {}
  Parameters& parameters() { return all_parameters; }
  Gradients& gradients() { return all_gradients; }
};

/// Parameters, an optimizer, and rounds of gradients, which are already scaled for one-pass updates.
template <class Strategy, class O>
class Update {
 public:
  Update(Strategy& strategy, std::size_t parameters, O optimizer)
      : strategy_(strategy), network_(strategy, parameters), optimizer_(strategy, network_, optimizer) {}
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;

  /// Returns the weights of one replica; all are equal.
  [[nodiscard]] std::vector<float> weights() {
    const auto weights = network_.all_parameters.read(strategy_.scope());
    return {weights.data(), weights.data() + weights.size()};
  }

 protected:
  /// Seconds of `apply(replica, gradient)` in the next round.
  template <class Apply>
  double time(float share, const Apply& apply) {
    ++round_;
    return time_of(
        strategy_,
        [&](auto& replica) { write_gradient(replica, network_.all_gradients.component(replica), round_, share); },
        [&](auto& replica) { apply(replica, network_.all_gradients.component(replica)); });
  }
  [[nodiscard]] float part_of_replica() const { return 1.0f / static_cast<float>(strategy_.num_replicas_in_sync()); }

  Strategy& strategy_;
  ParametersOnly<Strategy> network_;
  nn::Optimizer<Strategy, ParametersOnly<Strategy>, O> optimizer_;
  unsigned round_ = 0;
};

template <class Strategy, class O>
class Fused : public Update<Strategy, O> {
 public:
  using Update<Strategy, O>::Update;
  double operator()() {
    return this->time(this->part_of_replica(),
                      [&](auto& replica, const auto&) { this->optimizer_.apply_gradients(replica); });
  }
};

/// Separate passes on all of each replica's copy and slots. Without `scales` the gradients are already scaled.
template <class Strategy, class O>
class Unfused : public Update<Strategy, O> {
 public:
  Unfused(Strategy& strategy, std::size_t parameters, O optimizer, bool scales)
      : Update<Strategy, O>(strategy, parameters, optimizer), scales_(scales) {}
  double operator()() {
    return this->time(scales_ ? 1.0f : this->part_of_replica(), [&](auto& replica, const auto& gradient) {
      replica.all_reduce(dist::sum, gradient);
      if (scales_) replica.for_each(gradient.size(), Scale{gradient.data(), this->part_of_replica()});
      this->optimizer_.apply_gradients(replica, nn::skip_aggregation);
    });
  }

 private:
  bool scales_;
};

/// Exits the program if the weights of two ways differ.
inline void require_equal(const std::string& name, std::span<const float> expected, std::span<const float> weights) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(double{weights[i]} - double{expected[i]}) / std::abs(double{expected[i]}));
  if (largest < 1e-6) return;
  std::fprintf(stderr, "%s: the weights of two ways differ (largest relative difference %g)\n", name.c_str(), largest);
  std::exit(1);
}

}  // namespace bench
