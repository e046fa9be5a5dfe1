#include <dist/nn/hlo/traced_optimizer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include <dist/data/example.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/hlo/backend.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/hlo/traced_regularizer.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/saved.hpp>
#include <support/what_throws.hpp>

namespace nn = dist::nn;
using dist::PerReplica;
using dist::Tensor;

namespace {

using OnHost = dist::Mirrored<dist::ThreadAllReduce>;
using OnXla = dist::Mirrored<dist::ThreadAllReduce, dist::Xla>;
using Net = nn::Sequential<nn::Input<2>, nn::Dense<2, nn::Tanh>, nn::Dense<1>>;

using Batch = dist::data::Example<Tensor<float>, Tensor<float>>;

const PerReplica<Batch> batches(2, [](std::size_t replica) {
  return replica == 0 ? Batch{{{2, 2}, {1, -1, 0.5F, 2}}, {{2, 1}, {1, 0.5F}}}
                      : Batch{{{2, 2}, {-2, 0.25F, 1, 1}}, {{2, 1}, {-2, 1}}};
});

/// A network whose steps can be compiled or run directly.
template <class O, class Strategy = OnXla, class Backend = nn::Xla>
struct Training {
  explicit Training(const O& function) : optimizer(strategy, net, function) {}

  template <class... Kind>
  auto step(Kind... kind) {
    return [this, kind...](auto& replica, const auto& batch) {
      const auto outputs = net.forward(replica, batch.x);
      const auto loss = nn::mean_squared_error(replica, outputs, batch.y, 4);
      net.backward(replica, loss);
      nn::add_regularization_gradients(replica, net, nn::L2{0.125F});
      optimizer.apply_gradients(replica, kind...);
    };
  }
  void track(auto& visit) {
    visit("network", net);
    visit("optimizer", optimizer);
  }
  void check_same(auto& other) {
    const Tensor<float> ours = net.parameters().whole(strategy.scope());
    const Tensor<float> theirs = other.net.parameters().whole(other.strategy.scope());
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == doctest::Approx(theirs[i]).epsilon(1e-5));
    for (const nn::Parameter& parameter : net.layout())
      for (const auto& slot : optimizer.slots()) {
        const std::string name = slot.name().substr(O::name.size() + 1);
        const Tensor<float> own = optimizer.slot(strategy.scope(), name, parameter.name());
        const Tensor<float> of_other = other.optimizer.slot(other.strategy.scope(), name, parameter.name());
        for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == doctest::Approx(of_other[i]).epsilon(1e-5));
      }
    CHECK(optimizer.iterations(strategy.scope()) == other.optimizer.iterations(other.strategy.scope()));
  }

  Strategy strategy{2};
  nn::Network<Net, Backend> net{strategy, 5};
  nn::Optimizer<Strategy, nn::Network<Net, Backend>, O> optimizer;
};

}  // namespace

TEST_CASE("compiled and directly run steps can alternate, with slots and learning rates set by the host") {
  const nn::With function{nn::Adam{.learning_rate = 0.125F}, nn::GlobalClipNorm{0.5F},
                          nn::WeightDecay{.rate = 0.25F, .exclude = {"bias"}}};
  Training run{function}, mixed{function};
  auto compiled = mixed.strategy.compile(mixed.step());
  const auto both = [&](bool is_compiled) {
    run.strategy.run(run.step(), batches);
    if (is_compiled)
      compiled(batches);
    else
      mixed.strategy.run(mixed.step(), batches);
  };
  for (const bool is_compiled : {false, true, true, false, true}) {
    CAPTURE(is_compiled);
    both(is_compiled);
    mixed.check_same(run);
  }
  for (Training<nn::With<nn::Adam, nn::GlobalClipNorm, nn::WeightDecay>>* each : {&run, &mixed}) {
    each->optimizer.set_learning_rate(0.5F);
    each->optimizer.set_iterations(each->strategy.scope(), 1);
    each->optimizer.assign_slot(each->strategy.scope(), "velocity", "dense/kernel", 2.0F);
  }
  both(true);
  mixed.check_same(run);
  CHECK(mixed.optimizer.iterations(mixed.strategy.scope()) == 2);
  CHECK(compiled.programs() == 1);
}

TEST_CASE("a compiled step may skip the aggregation of gradients if all other steps do") {
  const nn::SGD function{.learning_rate = 0.25F, .momentum = 0.5F};
  Training run{function}, compiled{function};
  auto step = compiled.strategy.compile(compiled.step(nn::skip_aggregation));
  for (int i = 0; i < 2; ++i) {
    run.strategy.run(run.step(nn::skip_aggregation), batches);
    step(batches);
  }
  for (std::size_t replica = 0; replica < 2; ++replica) {
    const auto expected = run.net.parameters().component(run.strategy.scope(), replica);
    const auto own = compiled.net.parameters().component(compiled.strategy.scope(), replica);
    for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          compiled.strategy.compile(compiled.step())(batches);
        }).find("SGD was used with and without nn::skip_aggregation") != std::string::npos);
}

TEST_CASE("a compiled step may apply gradients twice, as two steps of the optimizer") {
  Training once{nn::Adam{}}, twice{nn::Adam{}};
  auto one = once.strategy.compile(once.step());
  one(batches);
  one(batches);
  auto both = twice.strategy.compile([step = twice.step()](auto& replica, const auto& batch) {
    step(replica, batch);
    step(replica, batch);
  });
  both(batches);
  twice.check_same(once);
}

TEST_CASE("compiled training can resume from a checkpoint of uncompiled training, and vice versa") {
  const nn::Adam function{.learning_rate = 0.125F};
  const auto train = [](auto& training) {
    auto step = training.strategy.compile(training.step());
    step(batches);
    step(batches);
  };
  Training<nn::Adam, OnHost, nn::Reference> all_run{function}, run{function};
  train(all_run);
  train(all_run);
  const auto goes_on = [&](auto& first, auto& second) {
    train(first);
    support::Saved{first.strategy, first}.restore(second.strategy, second);
    train(second);
    second.check_same(all_run);
  };
  Training compiled{function};
  goes_on(run, compiled);
  Training compiled_first{function};
  Training<nn::Adam, OnHost, nn::Reference> run_next{function};
  goes_on(compiled_first, run_next);
}

TEST_CASE("a compiled step accumulates the gradients of several calls, compiled or not, and keeps their number") {
  const nn::With function{nn::Adam{.learning_rate = 0.125F}, nn::AccumulateGradients{3}};
  Training run{function}, mixed{function};
  auto compiled = mixed.strategy.compile(mixed.step());
  const auto call = [&](bool is_compiled) {
    run.strategy.run(run.step(), batches);
    if (is_compiled)
      compiled(batches);
    else
      mixed.strategy.run(mixed.step(), batches);
    mixed.check_same(run);
  };
  for (const bool is_compiled : {true, true, true, false, true, true, true, false, false, false, true, true})
    call(is_compiled);
  CHECK(mixed.optimizer.iterations(mixed.strategy.scope()) == 4);
  CHECK(compiled.programs() == 3);
}
