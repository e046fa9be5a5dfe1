#include <dist/nn/hlo/traced_update.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <dist/hlo/collectives.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adadelta.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/nadam.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/strategy/default.hpp>
#include <hlo/run.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
using dist::Tensor;
using W = hlo::Traced<float, 4>;

namespace {

/// The weights, followed by the slots.
template <std::size_t Slots>
using State = hlo::Traced<float, Slots + 1, 4>;

template <std::size_t... Row, class S>
auto rows_of([[maybe_unused]] S state, std::index_sequence<Row...>) {
  return std::array<W, sizeof...(Row)>{hlo::reshape<4>(hlo::slice<0, Row, 1>(state))...};
}
template <std::size_t Slots, std::size_t Row = 0>
auto stacked(W weights, const std::array<W, Slots>& slots) {
  if constexpr (Row == Slots)
    return hlo::reshape<1, 4>(weights);
  else
    return hlo::concatenate<0>(stacked<Slots, Row + 1>(weights, slots), hlo::reshape<1, 4>(slots[Slots - 1 - Row]));
}

/// Checks that five steps of the optimizer on two devices, with summed gradients, match its functor on the host, in
/// weights and slots.
template <std::size_t Slots, class O>
void check_steps(const O& optimizer) {
  CAPTURE(O::name);
  CAPTURE(Slots);
  const dist::pjrt::Client client = testing::cpus(2);
  const hlo::Program program{
      client, hlo::trace<nn::StepNumbers, W, hlo::Donated<State<Slots>>>(
                  2, [&](nn::StepNumbers numbers, W gradient, State<Slots> state) {
                    std::array<W, Slots + 1> rows = rows_of(state, std::make_index_sequence<Slots + 1>{});
                    std::array<W, Slots> slots =
                        rows_of(hlo::slice < 0, Slots == 0 ? 0 : 1, Slots > (state), std::make_index_sequence<Slots>{});
                    std::array<nn::TracedParameter, 1> parameters{{{.weights = rows[0],
                                                                    .gradient = hlo::all_reduce(dist::sum, gradient),
                                                                    .slots = {slots.begin(), slots.end()}}}};
                    nn::traced_update(optimizer, numbers, parameters);
                    for (std::size_t slot = 0; slot < Slots; ++slot) slots[slot] = parameters[0].slots[slot].as<4>();
                    return stacked(parameters[0].weights.as<4>(), slots);
                  })};

  Tensor<float> expected{State<Slots>::shape()};
  for (float& each : expected.elements()) each = 0;
  for (std::size_t i = 0; i < 4; ++i) expected[i] = static_cast<float>(i) - 1.5F;
  hlo::PerReplica<State<Slots>> state{client, 2, expected};
  for (std::int64_t iteration = 1; iteration <= 5; ++iteration) {
    std::vector<Tensor<float>> gradients(2, Tensor<float>{dist::Shape{4}});
    for (std::size_t i = 0; i < 4; ++i)  // the last gradient is always 0
      for (std::size_t replica = 0; replica < 2; ++replica)
        gradients[replica][i] =
            i == 3 ? 0 : static_cast<float>((replica * 7 + i * 3 + static_cast<std::size_t>(iteration) * 5) % 11) - 4;
    state = program(hlo::PerReplica<nn::StepNumbers>{client, 2, nn::step_numbers(optimizer, iteration)},
                    hlo::PerReplica<W>{client, gradients}, std::move(state));
    optimizer.template with_update<float>(iteration, [&](const auto update) {
      REQUIRE(decltype(update)::slots.size() == Slots);
      for (std::size_t i = 0; i < 4; ++i) {
        std::array<float, Slots + 1> slots{};
        for (std::size_t slot = 0; slot != Slots; ++slot) slots[slot] = expected(slot + 1, i);
        expected[i] = update(expected[i], gradients[0][i] + gradients[1][i], slots.data());
        for (std::size_t slot = 0; slot != Slots; ++slot) expected(slot + 1, i) = slots[slot];
      }
    });
    const Tensor<float> computed = state.on(0);
    CHECK(state.on(1) == computed);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(static_cast<double>(computed[i]) == doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-5));
  }
}

/// Two parameters with padding between them, whose gradients the test writes.
struct TwoParameters {
  static constexpr std::array<nn::Parameter, 2> list{nn::Parameter{"dense", 0, "kernel", dist::Shape{3}, 0},
                                                     nn::Parameter{"dense", 0, "bias", dist::Shape{2}, 4}};
  using Weights = decltype(std::declval<dist::Default&>().variable<float>(dist::Shape{}));
  using Gradients = decltype(std::declval<dist::Default&>().buffer<float>(dist::Shape{}, std::string{}));

  explicit TwoParameters(dist::Default& strategy)
      : weights(strategy.variable<float>(dist::Shape{6})),
        of_weights(strategy.buffer<float>(dist::Shape{6}, "slopes")) {}
  Weights& parameters() { return weights; }
  Gradients& gradients() { return of_weights; }
  static std::span<const nn::Parameter> layout() { return list; }

  Weights weights;
  Gradients of_weights;
};

/// Checks that steps of an optimizer with options match nn::Optimizer on the host, for a long and a short parameter.
template <std::size_t Slots, class O>
void check_options(const O& optimizer) {
  CAPTURE(O::name);
  CAPTURE(typeid(O).name());
  using Flat = hlo::Traced<float, 6>;
  dist::Default strategy;
  TwoParameters network{strategy};
  nn::Optimizer on_host{strategy, network, optimizer};
  network.weights.assign(strategy.scope(), Tensor<float>{{6}, {3, -4, 1, 0, 0.25F, -0.5F}});

  const dist::pjrt::Client client = testing::cpus(1);
  using All = hlo::Traced<float, Slots + 1, 6>;
  const auto step = [&](nn::StepNumbers numbers, Flat gradient, All state) {
    const auto part = [](hlo::Value flat, const nn::Parameter& parameter) {
      const std::size_t end = parameter.offset + parameter.shape.elements();
      return hlo::Dynamic<float>{hlo::untyped::slice_along(flat, 0, parameter.offset, end)};
    };
    const auto row = [&](std::size_t number) {
      return hlo::untyped::reshape(hlo::untyped::slice_along(state.value(), 0, number, number + 1), Flat::shape());
    };
    std::vector<nn::TracedParameter> parameters;
    for (const nn::Parameter& each : TwoParameters::layout()) {
      parameters.push_back({.weights = part(row(0), each),
                            .gradient = part(gradient.value(), each),
                            .decays = nn::detail::decays(optimizer, each.name())});
      for (std::size_t slot = 0; slot < Slots; ++slot) parameters.back().slots.push_back(part(row(slot + 1), each));
    }
    nn::traced_update(optimizer, numbers, parameters);
    std::vector<hlo::Value> rows;
    for (std::size_t number = 0; number <= Slots; ++number) {
      const auto of = [&](const nn::TracedParameter& parameter) {
        return (number == 0 ? parameter.weights : parameter.slots[number - 1]).value();
      };
      const hlo::Value padding = hlo::Traced<float, 1>{0}.value();
      rows.push_back(
          hlo::untyped::reshape(hlo::untyped::concatenate({of(parameters[0]), padding, of(parameters[1])}, 0), {1, 6}));
    }
    return All{hlo::untyped::concatenate(rows, 0)};
  };
  const hlo::Program program{client, hlo::trace<nn::StepNumbers, Flat, All>(1, step)};

  Tensor<float> state{All::shape()};
  for (float& each : state.elements()) each = 0;
  for (std::size_t i = 0; i < 6; ++i) state[i] = network.weights.read(strategy.scope())[i];
  for (std::int64_t iteration = 1; iteration <= 4; ++iteration) {
    const auto slope = [&](std::size_t i) {  // large in the third step, 0 for the last element of each parameter
      const float size = iteration == 3 ? 5 : 1;
      return i == 3 || i == 5 ? 0
                              : size * (static_cast<float>((i * 5 + static_cast<std::size_t>(iteration) * 3) % 7) - 3);
    };
    Tensor<float> gradient{{6}};
    for (std::size_t i = 0; i < 6; ++i) gradient[i] = slope(i);
    strategy.run([&](auto& replica) {
      for (std::size_t i = 0; i < 6; ++i) network.of_weights.component(replica)[i] = gradient[i];
      on_host.apply_gradients(replica);
    });
    state = program(hlo::PerReplica<nn::StepNumbers>{client, 1, nn::step_numbers(optimizer, iteration)},
                    hlo::PerReplica<Flat>{client, 1, gradient}, hlo::PerReplica<All>{client, 1, state})
                .on(0);
    const auto check = [&](std::size_t row, const auto& expected) {
      CAPTURE(iteration);
      CAPTURE(row);
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(static_cast<double>(state(row, i)) == doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-6));
    };
    check(0, network.weights.read(strategy.scope()));
    REQUIRE(on_host.slots().size() == Slots);
    for (std::size_t slot = 0; slot < Slots; ++slot)
      strategy.run([&](auto& replica) { check(slot + 1, on_host.slots()[slot].component(replica)); });
  }
}

/// A learning rate of 0.1 that halves in each step.
struct Halves {
  double operator()(std::int64_t step) const { return 0.1 / static_cast<double>(std::int64_t{1} << step); }
};

}  // namespace

TEST_CASE("optimizers in a program match their functors on the host, with the numbers of each step") {
  check_steps<0>(nn::SGD{.learning_rate = 0.125F});
  check_steps<1>(nn::SGD{.learning_rate = 0.125F, .momentum = 0.5F});
  check_steps<1>(nn::SGD{.learning_rate = 0.125F, .momentum = 0.5F, .nesterov = true});
  check_steps<2>(nn::Adam{.learning_rate = 0.1F});
  check_steps<3>(nn::Adam{.learning_rate = 0.1F, .amsgrad = true});
  check_steps<1>(nn::RMSprop{.learning_rate = 0.1F});
  check_steps<3>(nn::RMSprop{.learning_rate = 0.1F, .momentum = 0.5F, .centered = true});
  check_steps<1>(nn::Adagrad{.learning_rate = 0.1F});
  check_steps<2>(nn::Adadelta{.learning_rate = 1});
  check_steps<1>(nn::Lion{.learning_rate = 0.1F});
  check_steps<2>(nn::Nadam{.learning_rate = 0.1F});
}

TEST_CASE("options of optimizers in a program match the host, for each parameter") {
  const nn::SGD sgd{.learning_rate = 0.125F};
  check_options<2>(nn::AdamW{.learning_rate = 0.1F, .weight_decay = 0.5F});
  check_options<0>(nn::With{sgd, nn::ClipValue{1.5F}});
  check_options<0>(nn::With{sgd, nn::ClipNorm{2}});
  check_options<0>(nn::With{sgd, nn::GlobalClipNorm{2}, nn::WeightDecay{.rate = 0.5F, .exclude = {"bias"}}});
  check_options<3>(nn::With{nn::Adam{}, nn::WeightDecay{.rate = 0.5F, .exclude = {"kernel"}}, Halves{},
                            nn::AverageWeights{.momentum = 0.75F, .overwrite_frequency = 2}});
  check_options<2>(nn::Lamb{.learning_rate = 0.1F});
  check_options<2>(
      nn::With{nn::Lamb{.learning_rate = 0.1F}, nn::WeightDecay{.rate = 0.5F, .exclude = {"bias"}}, nn::ClipNorm{1}});
  check_options<3>(nn::With{nn::AdamW{.amsgrad = true}, nn::ClipNorm{1}});
}

TEST_CASE("weights whose gradients are all 0 stay unchanged in a program, with an epsilon of 0") {
  check_steps<1>(nn::Adagrad{.learning_rate = 0.1F, .initial_accumulator_value = 0, .epsilon = 0});
}

TEST_CASE("the numbers of a step are the members of its functor, and a wrong number of slots is rejected") {
  const Tensor<float> numbers = nn::step_numbers(nn::SGD{.learning_rate = 0.25F, .momentum = 0.5F}, 1);
  CHECK(numbers == Tensor<float>{{16}, {0.25F, 0.5F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  CHECK(nn::step_numbers(nn::Adam{}, 1)[0] > nn::step_numbers(nn::Adam{}, 2)[0] / 2);
  CHECK(nn::step_numbers(nn::Adam{}, 1)[0] != nn::step_numbers(nn::Adam{}, 2)[0]);
  const auto with_no_slot = [](nn::StepNumbers of_step, W weights, W gradient) {
    std::array<nn::TracedParameter, 1> parameters{{{.weights = weights, .gradient = gradient}}};
    nn::traced_update(nn::Adam{}, of_step, parameters);
    return parameters[0].weights.as<4>();
  };
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(hlo::trace<nn::StepNumbers, W, W>(1, with_no_slot));
        }).find("A step of Adam cannot be traced (a parameter was given 0 slots, but has 2 with these options)") !=
        std::string::npos);
}
