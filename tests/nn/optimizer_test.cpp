#include <dist/nn/optimizer.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/dist.hpp>
#include <dist/nn/optimizers/adadelta.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/nadam.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/strategy/central_storage.hpp>

#include "conformance/make_strategy.hpp"
#include "conformance/optimizer.hpp"
#include "support/allocations.hpp"
#include "support/saved.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

static_assert(nn::OptimizerFunction<nn::SGD> && nn::OptimizerFunction<nn::RMSprop> && nn::OptimizerFunction<nn::Adam>);

namespace {

constexpr std::size_t count = 3001;  // not a multiple of a block, a cache line or a vector

/// The minimal network of an optimizer.
template <class S, class T = float>
struct Parameters {
  dist::DistributedVariable<T, dist::OnWrite, dist::None> weights;
  dist::DistributedVariable<T, dist::OnRead, dist::Sum> slopes;

  explicit Parameters(S& strategy)
      : weights(strategy.template variable<T>(
            dist::Shape{count},
            [](dist::TensorView<T> all) {
              for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<T>(std::sin(static_cast<double>(i)));
            },
            "weights")),
        slopes(strategy.template variable<T, dist::OnRead, dist::Sum>(dist::Shape{count}, T{0}, "slopes")) {}
  auto& parameters() { return weights; }
  auto& gradients() { return slopes; }
};

/// The whole gradient of a step; replica r of R has the fraction 2 (r + 1) / (R (R + 1)).
double gradient(std::size_t i, int step) { return std::cos(0.37 * static_cast<double>(i) + step); }
double share(std::size_t replica, std::size_t replicas) {
  return 2.0 * static_cast<double>(replica + 1) / static_cast<double>(replicas * (replicas + 1));
}

template <class S, class O, class T>
void take_steps(S& strategy, nn::Optimizer<S, Parameters<S, T>, O>& optimizer, Parameters<S, T>& net, int steps) {
  for (int step = 0; step < steps; ++step)
    strategy.run([&](auto& replica) {
      const std::span<T> mine = net.slopes.component(replica);
      const double part = share(replica.replica_id().index(), replica.num_replicas_in_sync());
      for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<T>(gradient(i, step) * part);
      optimizer.apply_gradients(replica);
    });
}

std::vector<double> adam_reference(const nn::Adam& adam, int steps) {
  const double beta_1{adam.beta_1};
  const double beta_2{adam.beta_2};
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    double w = static_cast<double>(static_cast<float>(std::sin(static_cast<double>(i))));
    double m = 0;
    double v = 0;
    for (int step = 0; step < steps; ++step) {
      const double g = gradient(i, step);
      m = beta_1 * m + (1 - beta_1) * g;
      v = beta_2 * v + (1 - beta_2) * g * g;
      w -= double{adam.learning_rate} * std::sqrt(1 - std::pow(beta_2, step + 1)) / (1 - std::pow(beta_1, step + 1)) *
           m / (std::sqrt(v) + double{adam.epsilon});
    }
    weights[i] = w;
  }
  return weights;
}

}  // namespace

TEST_CASE("1 to 4 replicas sum their gradients and agree with the formula in double (spec P07)") {
  const nn::Adam adam{.learning_rate = 0.01f};
  const std::vector<double> expected = adam_reference(adam, 20);
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    CAPTURE(replicas);
    Mirrored strategy{replicas};
    Parameters<Mirrored> net{strategy};
    nn::Optimizer optimizer{strategy, net, adam};
    take_steps(strategy, optimizer, net, 20);
    double worst = 0;
    bool mirrored = true;
    const auto first = net.weights.component(strategy.scope(), 0);
    for (std::size_t i = 0; i < count; ++i)
      worst = std::fmax(worst, std::fabs(static_cast<double>(first[i]) - expected[i]));
    for (std::size_t replica = 1; replica < replicas; ++replica)
      for (std::size_t i = 0; i < count; ++i)
        mirrored = mirrored && net.weights.component(strategy.scope(), replica)[i] == first[i];
    CHECK(worst < 3e-6);
    CHECK(mirrored);
    CHECK(optimizer.iterations(strategy.scope()) == 20);  // per global step, not per replica (spec P12)
    strategy.run([&](auto& replica) { CHECK(optimizer.iterations(replica) == 20); });
  }
}

TEST_CASE("double networks, other strategies and other collectives give the same result") {
  const nn::Adam adam{.learning_rate = 0.01f};
  const auto worst = [&](auto& strategy) {
    using S = std::remove_reference_t<decltype(strategy)>;
    Parameters<S, double> net{strategy};
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      for (double& weight : net.weights.component(strategy.scope(), local)) weight = double{static_cast<float>(weight)};
    nn::Optimizer optimizer{strategy, net, adam};
    take_steps(strategy, optimizer, net, 20);
    const std::vector<double> expected = adam_reference(adam, 20);
    double difference = 0;
    for (std::size_t i = 0; i < count; ++i)
      difference = std::fmax(difference, std::fabs(net.weights.component(strategy.scope(), 0)[i] - expected[i]));
    return difference;
  };
  dist::Default plain;
  CHECK(worst(plain) < 1e-12);
  dist::OneDevice<dist::Cpu> one;
  CHECK(worst(one) < 1e-12);
  Mirrored two{2};
  CHECK(worst(two) < 1e-12);
  dist::Mirrored<dist::ReductionToOneDevice> central{3};
  CHECK(worst(central) < 1e-12);
}

TEST_CASE("slots are sharded, and whole when read outside replica functions") {
  Mirrored strategy{3};
  Parameters<Mirrored> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f, .momentum = 0.9f}};
  take_steps(strategy, optimizer, net, 1);
  REQUIRE(optimizer.slots().size() == 1);
  CHECK(optimizer.slots()[0].name() == "SGD/momentum");
  const auto momentum = optimizer.slots()[0].read(strategy.scope());
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i)
    worst = std::fmax(worst, std::fabs(static_cast<double>(momentum[i]) + 0.5 * gradient(i, 0)));
  CHECK(worst < 1e-6);
  for (std::size_t i = 0; i < count; ++i) {
    int owners = 0;
    for (std::size_t replica = 0; replica < 3; ++replica)
      if (optimizer.slots()[0].component(strategy.scope(), replica)[i] != 0) ++owners;
    REQUIRE(owners == 1);
  }
}

TEST_CASE("the learning rate and the number of steps can be read, and set between steps") {
  Mirrored strategy{2};
  Parameters<Mirrored> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f}};
  CHECK(optimizer.learning_rate() == 0.5f);
  take_steps(strategy, optimizer, net, 1);
  optimizer.set_learning_rate(0.25f);
  CHECK(optimizer.learning_rate() == 0.25f);
  take_steps(strategy, optimizer, net, 1);
  const double start = static_cast<double>(static_cast<float>(std::sin(7.0)));
  CHECK(static_cast<double>(net.weights.component(strategy.scope(), 0)[7]) ==
        doctest::Approx(start - 0.75 * gradient(7, 0)).epsilon(1e-6));
  CHECK_THROWS_AS(optimizer.set_learning_rate(-1), dist::InvalidArgument);
  CHECK(optimizer.learning_rate() == 0.25f);

  optimizer.set_iterations(strategy.scope(), 40);
  CHECK(optimizer.iterations(strategy.scope()) == 40);
  take_steps(strategy, optimizer, net, 1);
  strategy.run([&](auto& replica) { CHECK(optimizer.iterations(replica) == 41); });
}

TEST_CASE("a changed learning rate is saved and restored") {
  Mirrored two{2};
  Parameters<Mirrored> net{two};
  nn::Optimizer optimizer{two, net, nn::SGD{.learning_rate = 0.5f}};
  optimizer.set_learning_rate(0.125f);
  const support::Saved saved{two, optimizer};
  Mirrored three{3};
  Parameters<Mirrored> other{three};
  nn::Optimizer restored{three, other, nn::SGD{.learning_rate = 0.5f}};
  saved.restore(three, restored);
  CHECK(restored.learning_rate() == 0.125f);
}

TEST_CASE("a schedule sets the rate of every update, counted from 0") {
  const nn::With function{nn::SGD{}, nn::PiecewiseConstant{.boundaries = {0, 1}, .values = {0.5f, 0.25f, 0.125f}},
                          nn::AccumulateGradients{2}};
  Mirrored strategy{2};
  Parameters<Mirrored> net{strategy};
  nn::Optimizer optimizer{strategy, net, function};
  const double start = static_cast<double>(static_cast<float>(std::sin(7.0)));
  const auto weight = [&] { return static_cast<double>(net.weights.component(strategy.scope(), 1)[7]); };
  CHECK(optimizer.learning_rate() == 0.5f);
  take_steps(strategy, optimizer, net, 1);
  CHECK(optimizer.learning_rate() == 0.5f);  // updates are counted, not calls
  take_steps(strategy, optimizer, net, 1);
  CHECK(optimizer.learning_rate() == 0.25f);
  CHECK(weight() == doctest::Approx(start - 0.5 * gradient(7, 0)).epsilon(1e-6));
  take_steps(strategy, optimizer, net, 2);
  take_steps(strategy, optimizer, net, 2);
  CHECK(optimizer.learning_rate(strategy.scope()) == 0.125f);
  strategy.run([&](auto& replica) { CHECK(optimizer.learning_rate(replica) == 0.125f); });
  const double mean = 0.5 * (gradient(7, 0) + gradient(7, 1));
  CHECK(weight() == doctest::Approx(start - 0.5 * gradient(7, 0) - 0.375 * mean).epsilon(1e-6));
  CHECK_THROWS_WITH_AS(optimizer.set_learning_rate(0.25f),
                       "The learning rate of optimizer SGD cannot be set (it follows the schedule given to nn::With, "
                       "and 0.25 would not be used). Leave out the schedule, or let it return the rate of each step.",
                       dist::InvalidArgument);

  // It continues with another number of replicas.
  const support::Saved saved{strategy, optimizer};
  Mirrored three{3};
  Parameters<Mirrored> other{three};
  nn::Optimizer restored{three, other, function};
  CHECK(restored.learning_rate() == 0.5f);
  saved.restore(three, restored);
  CHECK(restored.learning_rate() == 0.125f);
}

TEST_CASE("an invalid rate of a schedule stops every replica, and the schedule is checked at construction") {
  Mirrored strategy{2};
  Parameters<Mirrored> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::With{nn::SGD{}, [](std::int64_t step) { return step == 0 ? 0.5 : -1.0; }}};
  take_steps(strategy, optimizer, net, 1);
  CHECK_THROWS_WITH(take_steps(strategy, optimizer, net, 1), doctest::Contains("SGD.learning_rate is out of range"));
  CHECK_THROWS_AS((nn::Optimizer{strategy, net, nn::With{nn::SGD{}, nn::PiecewiseConstant{}}}), dist::InvalidArgument);
}

TEST_CASE("hyper-parameters out of range are rejected at construction") {
  dist::Default strategy;
  Parameters<dist::Default> net{strategy};
  CHECK_THROWS_AS((nn::Optimizer{strategy, net, nn::RMSprop{.rho = 1}}), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Optimizer{strategy, net, nn::SGD{.learning_rate = -0.1f}}), dist::InvalidArgument);
}

TEST_CASE("parameters that are not trainable are rejected (spec G03)") {
  dist::Default strategy;
  Parameters<dist::Default> net{strategy};
  net.weights = strategy.variable<float, dist::OnWrite, dist::None>({count}, 0.0f, "frozen", dist::Trainable::no);
  CHECK_THROWS_WITH_AS((nn::Optimizer{strategy, net, nn::SGD{}}),
                       "An optimizer was given variable 'frozen', which is not trainable (it was made with "
                       "Trainable::no, or OnRead). Make it with Trainable::yes to train it.",
                       dist::InvalidArgument);
}

TEST_CASE("without aggregation, each replica has its own whole slots") {
  Mirrored strategy{2};
  Parameters<Mirrored> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f, .momentum = 0.5f}};
  strategy.run([&](auto& replica) {
    for (float& slope : net.slopes.component(replica)) slope = static_cast<float>(replica.local_index() + 1);
    optimizer.apply_gradients(replica, nn::skip_aggregation);
  });
  CHECK(optimizer.slots()[0].component(strategy.scope(), 0)[count - 1] == -0.5f);
  CHECK(optimizer.slots()[0].component(strategy.scope(), 1)[count - 1] == -1.0f);
  CHECK(optimizer.slots()[0].component(strategy.scope(), 1)[0] == -1.0f);
}

namespace {

template <class S, class O>
void check_allocations(S& strategy, const O& function) {
  CAPTURE(strategy.describe());
  CAPTURE(std::string_view{O::name});
  Parameters<S> net{strategy};
  nn::Optimizer optimizer{strategy, net, function};
  take_steps(strategy, optimizer, net, 1);
  const std::size_t before = allocations;
  take_steps(strategy, optimizer, net, 4);
  CHECK(allocations == before);
}

template <class S>
void check_allocations_of_all(S& strategy) {
  const nn::SGD sgd{.momentum = 0.9f, .nesterov = true};
  check_allocations(strategy, nn::SGD{});
  check_allocations(strategy, sgd);
  check_allocations(strategy, nn::RMSprop{.momentum = 0.9f, .centered = true});
  check_allocations(strategy, nn::Adam{.amsgrad = true});
  check_allocations(strategy, nn::Adadelta{});
  check_allocations(strategy, nn::Adagrad{});
  check_allocations(strategy, nn::Lion{});
  check_allocations(strategy, nn::Nadam{});
  check_allocations(strategy, nn::Lamb{});
  check_allocations(strategy, nn::With{sgd, nn::AccumulateGradients{2}});
  check_allocations(strategy, nn::With{sgd, nn::PiecewiseConstant{.boundaries = {1}, .values = {0.5f, 0.25f}}});
  check_allocations(strategy, nn::With{sgd, nn::WeightDecay{.exclude = {"bias"}}, nn::AverageWeights{}});
  if constexpr (!S::Store::shared) {
    check_allocations(strategy, nn::With{sgd, nn::ClipValue{0.5f}});
    check_allocations(strategy, nn::With{sgd, nn::ClipNorm{0.5f}, nn::AccumulateGradients{2}});
    check_allocations(strategy, nn::With{nn::Adam{}, nn::GlobalClipNorm{0.5f}, nn::WeightDecay{}});
    check_allocations(strategy, nn::With{nn::Lamb{}, nn::ClipNorm{0.5f}, nn::WeightDecay{}});
  }
}

}  // namespace

TEST_CASE("a step with any option does not allocate") {
  dist::Default plain;
  check_allocations_of_all(plain);
  Mirrored one{1};
  check_allocations_of_all(one);
  Mirrored mirrored{3};
  check_allocations_of_all(mirrored);
  dist::CentralStorage<dist::Cpu> central{3};
  check_allocations_of_all(central);
}

TEST_CASE("clipping uses the norms of the sums, and does not change the gradients") {
  constexpr double limit = 2;
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    CAPTURE(replicas);
    Mirrored strategy{replicas};
    Parameters<Mirrored> net{strategy};
    std::vector<float> expected(count);
    std::vector<float> sums(count);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      expected[i] = static_cast<float>(std::sin(static_cast<double>(i)));
      for (std::size_t rank = 0; rank < replicas; ++rank)
        sums[i] += static_cast<float>(gradient(i, 0) * share(rank, replicas));
      squares += double{sums[i]} * double{sums[i]};
    }
    REQUIRE(std::sqrt(squares) > limit);
    const auto scale = static_cast<float>(limit / std::sqrt(squares));
    for (std::size_t i = 0; i < count; ++i) expected[i] -= 0.5f * (sums[i] * scale);
    nn::Optimizer optimizer{strategy, net,
                            nn::With{nn::SGD{.learning_rate = 0.5f}, nn::GlobalClipNorm{static_cast<float>(limit)}}};
    take_steps(strategy, optimizer, net, 1);
    for (std::size_t local = 0; local < replicas; ++local) {
      const auto weights = net.weights.component(strategy.scope(), local);
      const auto gradients = net.slopes.component(strategy.scope(), local);
      std::size_t wrong = 0;
      std::size_t changed = 0;
      for (std::size_t i = 0; i < count; ++i) {
        wrong += !(std::fabs(weights[i] - expected[i]) <= 1e-7f);
        changed += gradients[i] != static_cast<float>(gradient(i, 0) * share(local, replicas));
      }
      CHECK(wrong == 0);
      CHECK(changed == 0);
    }
  }
}

namespace {

template <std::size_t replicas>
using MakeMirrored = conformance::Make<Mirrored, replicas>;
template <std::size_t replicas>
using MakeCentral = conformance::Make<dist::CentralStorage<dist::Cpu>, replicas>;

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, conformance::Make<dist::Default>,
                               conformance::Make<dist::OneDevice<dist::Cpu>>, MakeMirrored<1>, MakeMirrored<2>,
                               MakeMirrored<3>, MakeMirrored<4>, MakeMirrored<8>, MakeCentral<1>, MakeCentral<2>,
                               MakeCentral<3>, MakeCentral<4>, MakeCentral<8>,
                               conformance::Make<dist::Mirrored<dist::ReductionToOneDevice>, 3>,
                               conformance::Make<dist::Mirrored<dist::RingAllReduce>, 3>,
                               conformance::Make<dist::Mirrored<dist::HierarchicalCopyAllReduce>, 4>);
