// The suite of optimizers (spec P07, P08, P10 to P13): compares with Keras' formulas in plain loops. A strategy joins
// with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, conformance::Make<TheStrategy, replicas>);
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <conformance/workers.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adadelta.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/nadam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

#include <doctest/doctest.h>

namespace conformance {

namespace nn = dist::nn;

/// The parts of a network that an optimizer needs: two layers, with padding between parameters like in networks.
template <class S>
struct TwoLayers {
  static constexpr std::array<nn::Parameter, 4> parameter_list{
      nn::Parameter{"dense", 0, "kernel", dist::Shape{301, 5}, 0},
      nn::Parameter{"dense", 0, "bias", dist::Shape{5}, 1520},
      nn::Parameter{"dense", 1, "kernel", dist::Shape{5, 100}, 1536},
      nn::Parameter{"dense", 1, "bias", dist::Shape{100}, 2048},
  };
  static constexpr std::size_t size = 2160;

  static double first_value(std::size_t i) { return std::sin(static_cast<double>(i)); }

  explicit TwoLayers(S& strategy)
      : weights(dist::detail::variable_of_tensors<double, dist::OnWrite, dist::None>(
            strategy, dist::Shape{size},
            [](dist::TensorView<double> all) {
              for (const nn::Parameter& parameter : parameter_list)
                for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
                  all[parameter.offset + i] = first_value(parameter.offset + i);
            },
            "weights", parameter_list)),
        slopes(strategy.template buffer<double>(dist::Shape{size}, "slopes")) {}

  auto& parameters() { return weights; }
  auto& gradients() { return slopes; }
  static std::span<const nn::Parameter> layout() { return parameter_list; }

  decltype(std::declval<S&>().template variable<double>(dist::Shape{}, 0.0, std::string{})) weights;
  decltype(std::declval<S&>().template buffer<double>(dist::Shape{}, std::string{})) slopes;
};

/// The summed gradient of a call, and the part of it that replica `rank` has.
inline double whole_gradient(std::size_t i, std::size_t call) {
  return std::cos(0.37 * static_cast<double>(i) + static_cast<double>(call));
}
inline double part_of_gradient(std::size_t rank, std::size_t replicas) {
  return 2.0 * static_cast<double>(rank + 1) / static_cast<double>(replicas * (replicas + 1));
}

struct Plan;

/// One parameter in a step, counted from 1, with gradients after clipping.
struct Part {
  std::span<double> weights;
  std::span<const double> gradients;
  std::span<double> first_slot;
  std::span<double> second_slot;
  std::size_t step;
};
/// Keras' formula of an optimizer.
using Rule = void (*)(const Plan& plan, const Part& part);
void descend(const Plan& plan, const Part& part);

/// The settings of a training, and the same training with Keras' formulas in loops over the parameters.
struct Plan {
  Rule rule = descend;
  double rate = 0.1;
  double momentum = 0.9;
  double clip_value = 0;
  double clip_norm = 0;
  double global_clip_norm = 0;
  double weight_decay = 0;
  std::string_view exclude = "";
  bool average = false;
  double average_momentum = 0;
  std::size_t overwrite = 0;
  std::size_t accumulate = 1;
};

inline void descend(const Plan& plan, const Part& part) {
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    part.first_slot[i] = plan.momentum * part.first_slot[i] - plan.rate * part.gradients[i];
    part.weights[i] += part.first_slot[i];
  }
}
/// Uses the defaults of all settings except the rate.
inline void adagrad(const Plan& plan, const Part& part) {
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    if (part.step == 1) part.first_slot[i] = double{0.1F};
    part.first_slot[i] += part.gradients[i] * part.gradients[i];
    part.weights[i] -= plan.rate * part.gradients[i] / std::sqrt(part.first_slot[i] + double{1e-7F});
  }
}
inline void adadelta(const Plan& plan, const Part& part) {
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    double& squares = part.first_slot[i] = 0.75 * part.first_slot[i] + 0.25 * part.gradients[i] * part.gradients[i];
    const double step = part.gradients[i] * std::sqrt((part.second_slot[i] + 0.125) / (squares + 0.125));
    part.second_slot[i] = 0.75 * part.second_slot[i] + 0.25 * step * step;
    part.weights[i] -= plan.rate * step;
  }
}
inline void nadam(const Plan& plan, const Part& part) {
  double product = 1, now = 0, next = 0;
  for (std::size_t step = 1; step <= part.step; ++step) {
    now = 0.75 * (1 - 0.5 * std::pow(0.96, step));
    next = 0.75 * (1 - 0.5 * std::pow(0.96, step + 1));
    product *= now;
  }
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    const double g = part.gradients[i];
    double& m = part.first_slot[i] = 0.75 * part.first_slot[i] + 0.25 * g;
    double& v = part.second_slot[i] = 0.5 * part.second_slot[i] + 0.5 * g * g;
    const double direction = next * m / (1 - product * next) + (1 - now) * g / (1 - product);
    part.weights[i] -= plan.rate * direction / (std::sqrt(v / (1 - std::pow(0.5, part.step))) + 0.125);
  }
}
inline void lion(const Plan& plan, const Part& part) {
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    const double direction = 0.75 * part.first_slot[i] + 0.25 * part.gradients[i];
    part.weights[i] -= plan.rate * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
    part.first_slot[i] = 0.5 * part.first_slot[i] + 0.5 * part.gradients[i];
  }
}

inline void lamb(const Plan& plan, const Part& part) {
  std::vector<double> direction(part.weights.size());
  double squares_of_weights = 0, squares_of_direction = 0;
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    double& m = part.first_slot[i] = 0.75 * part.first_slot[i] + 0.25 * part.gradients[i];
    double& v = part.second_slot[i] = 0.5 * part.second_slot[i] + 0.5 * part.gradients[i] * part.gradients[i];
    direction[i] = m / (1 - std::pow(0.75, part.step)) / (std::sqrt(v / (1 - std::pow(0.5, part.step))) + 0.125);
    squares_of_weights += part.weights[i] * part.weights[i];
    squares_of_direction += direction[i] * direction[i];
  }
  const double ratio = std::sqrt(squares_of_weights) / std::sqrt(squares_of_direction);
  for (std::size_t i = 0; i < part.weights.size(); ++i) part.weights[i] -= plan.rate * ratio * direction[i];
}

struct Trained {
  std::vector<double> weights;
  std::vector<double> averages;
};

template <class Net>
Trained train_in_loops(const Plan& plan, std::size_t calls, double share = 1) {
  std::vector<double> weights(Net::size), averages(Net::size), gradients(Net::size);
  std::vector<double> first_slot(Net::size), second_slot(Net::size);
  for (const nn::Parameter& parameter : Net::parameter_list)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
      weights[parameter.offset + i] = Net::first_value(parameter.offset + i);
  std::size_t updates = 0;
  for (std::size_t call = 0; call < calls; ++call) {
    for (std::size_t i = 0; i < Net::size; ++i) gradients[i] += share * whole_gradient(i, call);
    if ((call + 1) % plan.accumulate != 0) continue;
    ++updates;
    for (double& gradient : gradients) gradient /= static_cast<double>(plan.accumulate);
    double all_squares = 0;
    for (const nn::Parameter& parameter : Net::parameter_list)
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
        all_squares += gradients[parameter.offset + i] * gradients[parameter.offset + i];
    for (const nn::Parameter& parameter : Net::parameter_list) {
      double squares = 0;
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
        squares += gradients[parameter.offset + i] * gradients[parameter.offset + i];
      const bool decays = plan.exclude.empty() || parameter.name().find(plan.exclude) == std::string::npos;
      const std::size_t first = parameter.offset, count = parameter.shape.elements();
      for (std::size_t i = first; i < first + count; ++i) {
        double& g = gradients[i];
        if (plan.clip_value > 0) g = std::fmax(-plan.clip_value, std::fmin(plan.clip_value, g));
        if (plan.clip_norm > 0) g *= plan.clip_norm / std::fmax(std::sqrt(squares), plan.clip_norm);
        if (plan.global_clip_norm > 0)
          g *= plan.global_clip_norm * std::fmin(1 / std::sqrt(all_squares), 1 / plan.global_clip_norm);
        if (decays) weights[i] -= weights[i] * plan.weight_decay * plan.rate;
      }
      const auto of_parameter = [&](std::vector<double>& all) { return std::span{all}.subspan(first, count); };
      plan.rule(plan, {of_parameter(weights), of_parameter(gradients), of_parameter(first_slot),
                       of_parameter(second_slot), updates});
      for (std::size_t i = first; i < first + count; ++i) {
        const double keep = updates == 1 ? 0 : plan.average_momentum;
        averages[i] = keep * averages[i] + (1 - keep) * weights[i];
        if (plan.average && plan.overwrite > 0 && updates % plan.overwrite == 0) weights[i] = averages[i];
      }
    }
    for (double& gradient : gradients) gradient = 0;
  }
  return {weights, averages};
}

/// Compares elements of parameters only, not the padding.
template <class Net>
double largest_difference(std::span<const double> mine, const std::vector<double>& expected) {
  double worst = 0;
  for (const nn::Parameter& parameter : Net::parameter_list)
    for (std::size_t i = parameter.offset; i < parameter.offset + parameter.shape.elements(); ++i)
      worst = std::fmax(worst, std::isnan(mine[i]) ? 1e300 : std::fabs(mine[i] - expected[i]));
  return worst;
}

/// Returns a replica's copy of the weights.
template <class S>
std::vector<double> weights_of(S& strategy, TwoLayers<S>& net, std::size_t local) {
  const auto scope = strategy.scope();
  const auto copy = net.weights.component(scope, local);
  std::vector<double> weights(copy.size());
  dist::detail::copy_and_wait(scope.queue(local), copy, std::span<double>{weights});
  return weights;
}

/// Returns true if all copies of the weights, including those in other processes, have the same bits.
template <class S>
bool mirrored(S& strategy, TwoLayers<S>& net) {
  const auto first = weights_of(strategy, net, 0);
  for (std::size_t local = 1; local < strategy.num_local_replicas(); ++local)
    if (weights_of(strategy, net, local) != first) return false;
  if constexpr (has_workers<S>) {
    const auto equal = strategy.run([&](auto& replica) {
      std::vector<double> least = first, most = first;
      replica.all_reduce(dist::min, std::span<double>{least});
      replica.all_reduce(dist::max, std::span<double>{most});
      return least == most;
    });
    for (const bool each : equal)
      if (!each) return false;
  }
  return true;
}

/// Sets this replica's gradient in a call; the padding stays zero, as in a network.
template <class Net>
void set_gradient(const auto& replica, Net& net, std::size_t call) {
  const double part = part_of_gradient(replica.replica_id().index(), replica.num_replicas_in_sync());
  std::vector<double> values(Net::size);
  for (const nn::Parameter& parameter : Net::parameter_list)
    for (std::size_t i = parameter.offset; i < parameter.offset + parameter.shape.elements(); ++i)
      values[i] = part * whole_gradient(i, call);
  dist::detail::copy_and_wait(replica.queue(), std::span<const double>{values}, net.slopes.component(replica));
}

template <class S, class Net, class Optimizer, class... Option>
void take_steps(S& strategy, Net& net, Optimizer& optimizer, std::size_t first, std::size_t last, Option... option) {
  for (std::size_t call = first; call < last; ++call)
    strategy.run([&](auto& replica) {
      set_gradient(replica, net, call);
      optimizer.apply_gradients(replica, option...);
    });
}

template <class S, class O>
void check_training(S& strategy, const O& function, const Plan& plan) {
  constexpr std::size_t calls = 12;
  using Net = TwoLayers<S>;
  Net net{strategy};
  nn::Optimizer optimizer{strategy, net, function};
  take_steps(strategy, net, optimizer, 0, calls);
  const Trained expected = train_in_loops<Net>(plan, calls);
  const auto weights = net.weights.read(strategy.scope());
  CHECK(largest_difference<Net>({weights.data(), weights.size()}, expected.weights) < 1e-12);
  CHECK(mirrored(strategy, net));
  CHECK(optimizer.iterations(strategy.scope()) == static_cast<std::int64_t>(calls / plan.accumulate));  // spec P12
  strategy.run([&](auto& replica) {
    CHECK(optimizer.iterations(replica) == static_cast<std::int64_t>(calls / plan.accumulate));
  });
  if (plan.average) {
    REQUIRE(optimizer.slots().back().name() == dist::concat(O::name, "/average"));
    const auto average = optimizer.slots().back().read(strategy.scope());
    CHECK(largest_difference<Net>({average.data(), average.size()}, expected.averages) < 1e-12);
    optimizer.finalize(strategy.scope());
    const auto last = net.weights.read(strategy.scope());
    CHECK(largest_difference<Net>({last.data(), last.size()}, expected.averages) < 1e-12);
    CHECK(mirrored(strategy, net));
  }
}

template <class S>
void check_skipped_aggregation(S& strategy) {
  using Net = TwoLayers<S>;
  const std::size_t replicas = strategy.num_replicas_in_sync();
  const nn::SGD momentum{.learning_rate = 0.125f, .momentum = 0.5f};
  {  // copies differ
    Net net{strategy};
    nn::Optimizer optimizer{strategy, net, momentum};
    take_steps(strategy, net, optimizer, 0, 5, nn::skip_aggregation);
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const Trained expected = train_in_loops<Net>({.rate = 0.125, .momentum = 0.5}, 5,
                                                   part_of_gradient(strategy.first_local_replica() + local, replicas));
      CHECK(largest_difference<Net>(weights_of(strategy, net, local), expected.weights) < 1e-12);
    }
    CHECK(optimizer.iterations(strategy.scope()) == 5);
    if (replicas > 1) CHECK_THROWS(take_steps(strategy, net, optimizer, 5, 6));
  }
  {
    Net net{strategy};
    nn::Optimizer optimizer{strategy, net,
                            nn::Lamb{.learning_rate = 0.125f, .beta_1 = 0.75f, .beta_2 = 0.5f, .epsilon = 0.125f}};
    take_steps(strategy, net, optimizer, 0, 5, nn::skip_aggregation);
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const Trained expected = train_in_loops<Net>({.rule = lamb, .rate = 0.125}, 5,
                                                   part_of_gradient(strategy.first_local_replica() + local, replicas));
      CHECK(largest_difference<Net>(weights_of(strategy, net, local), expected.weights) < 1e-12);
    }
  }
  {  // after a manual all_reduce the result is the same as with aggregation
    Net net{strategy};
    nn::Optimizer optimizer{strategy, net,
                            nn::With{momentum, nn::GlobalClipNorm{2.0f}, nn::AverageWeights{.momentum = 0.75f}}};
    for (std::size_t call = 0; call < 5; ++call)
      strategy.run([&](auto& replica) {
        set_gradient(replica, net, call);
        const auto mine = net.slopes.component(replica);
        replica.all_reduce(dist::sum, mine);
        optimizer.apply_gradients(replica, nn::skip_aggregation);
      });
    const Trained expected = train_in_loops<Net>(
        {.rate = 0.125, .momentum = 0.5, .global_clip_norm = 2, .average = true, .average_momentum = 0.75}, 5);
    const auto weights = net.weights.read(strategy.scope());
    CHECK(largest_difference<Net>({weights.data(), weights.size()}, expected.weights) < 1e-12);
    CHECK(mirrored(strategy, net));
    optimizer.finalize(strategy.scope());
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      CHECK(largest_difference<Net>(weights_of(strategy, net, local), expected.averages) < 1e-12);
  }
}

template <class S>
void check_optimizers(std::unique_ptr<S> (*make)()) {
  const auto owner = make();
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  const nn::SGD sgd{.learning_rate = 0.125f, .momentum = 0.5f};  // exact in binary
  const Plan plan{.rate = 0.125, .momentum = 0.5};
  check_training(strategy, sgd, plan);
  {
    Plan decayed = plan;
    decayed.weight_decay = 0.25;
    check_training(strategy, nn::With{sgd, nn::WeightDecay{.rate = 0.25f}}, decayed);
    decayed.exclude = "bias";
    check_training(strategy, nn::With{sgd, nn::WeightDecay{.rate = 0.25f, .exclude = {"bias"}}}, decayed);
    decayed.exclude = "dense_1/";
    check_training(strategy, nn::With{sgd, nn::WeightDecay{.rate = 0.25f, .exclude = {"dense_1/", "gamma"}}}, decayed);
  }
  {
    Plan averaged = plan;
    averaged.average = true;
    averaged.average_momentum = 0.75;
    check_training(strategy, nn::With{sgd, nn::AverageWeights{.momentum = 0.75f}}, averaged);
    averaged.overwrite = 3;
    check_training(strategy, nn::With{sgd, nn::AverageWeights{.momentum = 0.75f, .overwrite_frequency = 3}}, averaged);
  }
  {
    Plan accumulated = plan;
    accumulated.accumulate = 4;
    check_training(strategy, nn::With{sgd, nn::AccumulateGradients{4}}, accumulated);
  }
  check_training(strategy, nn::Adagrad{.learning_rate = 0.125f}, {.rule = adagrad, .rate = 0.125});
  check_training(strategy, nn::Adadelta{.learning_rate = 0.125f, .rho = 0.75f, .epsilon = 0.125f},
                 {.rule = adadelta, .rate = 0.125});
  check_training(strategy, nn::Nadam{.learning_rate = 0.125f, .beta_1 = 0.75f, .beta_2 = 0.5f, .epsilon = 0.125f},
                 {.rule = nadam, .rate = 0.125});
  check_training(strategy, nn::Lion{.learning_rate = 0.125f, .beta_1 = 0.75f, .beta_2 = 0.5f},
                 {.rule = lion, .rate = 0.125});
  const nn::Lamb lamb_function{.learning_rate = 0.125f, .beta_1 = 0.75f, .beta_2 = 0.5f, .epsilon = 0.125f};
  check_training(strategy, lamb_function, {.rule = lamb, .rate = 0.125});
  check_training(strategy,
                 nn::With{lamb_function, nn::WeightDecay{.rate = 0.25f, .exclude = {"bias"}},
                          nn::AccumulateGradients{3}, nn::AverageWeights{.momentum = 0.75f}},
                 {.rule = lamb,
                  .rate = 0.125,
                  .weight_decay = 0.25,
                  .exclude = "bias",
                  .average = true,
                  .average_momentum = 0.75,
                  .accumulate = 3});
  if constexpr (!S::Store::shared) {
    Plan clipped = plan;
    clipped.clip_value = 0.5;
    check_training(strategy, nn::With{sgd, nn::ClipValue{0.5f}}, clipped);
    clipped.clip_value = 0;
    clipped.clip_norm = 4;  // between the norms of the biases and of the kernels
    check_training(strategy, nn::With{sgd, nn::ClipNorm{4.0f}}, clipped);
    clipped.clip_norm = 0;
    for (const double norm : {2.0, 1024.0}) {  // below and above the norm of all
      clipped.global_clip_norm = norm;
      check_training(strategy, nn::With{sgd, nn::GlobalClipNorm{static_cast<float>(norm)}}, clipped);
    }
    Plan everything{.rate = 0.125,
                    .momentum = 0.5,
                    .clip_norm = 4,
                    .weight_decay = 0.25,
                    .exclude = "bias",
                    .average = true,
                    .average_momentum = 0.75,
                    .overwrite = 2,
                    .accumulate = 3};
    const auto check_everything = [&](const auto& function) {
      check_training(strategy,
                     nn::With{function, nn::AccumulateGradients{3}, nn::ClipNorm{4.0f},
                              nn::AverageWeights{.momentum = 0.75f, .overwrite_frequency = 2},
                              nn::WeightDecay{.rate = 0.25f, .exclude = {"bias"}}},
                     everything);
    };
    check_everything(sgd);
    everything.rule = adagrad;
    check_everything(nn::Adagrad{.learning_rate = 0.125f});
    everything.rule = lamb;
    check_everything(lamb_function);
    check_training(strategy, nn::With{lamb_function, nn::GlobalClipNorm{2.0f}},
                   {.rule = lamb, .rate = 0.125, .global_clip_norm = 2});
    check_training(strategy, nn::With{lamb_function, nn::ClipValue{0.5f}},
                   {.rule = lamb, .rate = 0.125, .clip_value = 0.5});
    if constexpr (!dist::RemoteStore<typename S::Store>) check_skipped_aggregation(strategy);
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("optimizers (spec A18, P07, P08, P10, P11, P12, P13)", Maker, optimizers) {
  conformance::check_optimizers(&Maker::make);
}
