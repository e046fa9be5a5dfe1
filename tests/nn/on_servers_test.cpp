// Networks, optimizers and metrics on the coordinator of a ParameterServer. For workers see
// coordinator/worker_copy_test.cpp.
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/served_job.hpp"
#include "coordinator/small_network.hpp"
#include "support/temporary_folder.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist_test::ServedJob;

namespace {

using Small = nn::Network<small::Dense>;
using Kept = nn::Sequential<nn::Input<6>, nn::Dense<4>, nn::BatchNormalization<>, nn::Dense<2>>;

std::vector<float> values_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

}  // namespace

TEST_CASE("initial parameters equal other strategies', and the coordinator reads and assigns them") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  const auto scope = job.scope();
  Small net{job.strategy(), 3};
  dist::Default alone;
  const nn::Network<small::Dense> expected{alone, 3};
  for (const nn::Parameter& parameter : net.layout())
    CHECK(values_of(net.parameter(scope, parameter.name())) ==
          values_of(expected.parameter(alone.scope(), parameter.name())));
  net.assign_parameter(scope, "dense_1/bias", std::vector<float>{1, 2, 3});
  CHECK(values_of(net.parameter(scope, "dense_1/bias")) == std::vector<float>{1, 2, 3});
  CHECK_THROWS_AS((void)net.parameter(scope, "dense_2/bias"), dist::InvalidArgument);
  CHECK_THROWS_AS(net.assign_parameter(scope, "dense_1/bias", std::vector<float>{1}), dist::ShapeMismatch);
}

TEST_CASE("checkpoints of networks with state are exchangeable between servers and other strategies (spec K11)") {
  const support::TemporaryFolder folder;
  dist::Default alone;
  nn::Network<Kept> plain{alone, 1};
  plain.assign_parameter(alone.scope(), "dense_1/bias", std::vector<float>{5, 6});
  plain.state().assign(alone.scope(), 0.5F);
  dist::Checkpoint{alone}.add("network", plain).save(folder.path("plain"));
  {
    ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{3}});
    nn::Network<Kept> net{job.strategy(), 2};
    dist::Checkpoint{job.strategy()}.add("network", net).restore(folder.path("plain"));
    for (const nn::Parameter& parameter : net.layout())
      CHECK(values_of(net.parameter(job.scope(), parameter.name())) ==
            values_of(plain.parameter(alone.scope(), parameter.name())));
    CHECK(net.state().whole(job.scope())[0] == 0.5F);
    net.assign_parameter(job.scope(), "dense_1/bias", std::vector<float>{7, 8});
    dist::Checkpoint{job.strategy()}.add("network", net).save(folder.path("servers"));
  }
  nn::Network<Kept> restored{alone, 9};
  dist::Checkpoint{alone}.add("network", restored).restore(folder.path("servers"));
  CHECK(values_of(restored.parameter(alone.scope(), "dense_1/bias")) == std::vector<float>{7, 8});
  CHECK(values_of(restored.parameter(alone.scope(), "dense/kernel")) ==
        values_of(plain.parameter(alone.scope(), "dense/kernel")));
  CHECK(restored.state().whole(alone.scope())[0] == 0.5F);
}

TEST_CASE("slots are stored with the parameters, and optimizers of one network have separate slots") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  const auto scope = job.scope();
  Small net{job.strategy()};
  const nn::Optimizer sgd{job.strategy(), net, nn::SGD{0.1F, 0.9F}};
  nn::Optimizer adam{job.strategy(), net, nn::Adam{}};
  dist::Tensor<float> given{dist::Shape{3}};
  for (std::size_t i = 0; i < 3; ++i) given[i] = static_cast<float>(i + 1);
  adam.assign_slot(scope, "velocity", "dense_1/bias", given);
  CHECK(values_of(adam.slot(scope, "velocity", "dense_1/bias")) == std::vector<float>{1, 2, 3});
  CHECK(values_of(adam.slot(scope, "momentum", "dense_1/bias")) == std::vector<float>{0, 0, 0});
  CHECK(values_of(sgd.slot(scope, "momentum", "dense_1/bias")) == std::vector<float>{0, 0, 0});
  CHECK(support::what_throws([&] { (void)adam.slot(scope, "average", "dense/bias"); }) ==
        "Optimizer Adam has no slot 'average' (it has Adam/momentum, Adam/velocity). Use the part after Adam/ of one "
        "of these names.");
  CHECK_THROWS_AS((void)adam.slot(scope, "momentum", "dense_7/bias"), dist::InvalidArgument);
}

TEST_CASE("the coordinator reads and sets the iterations and the learning rate (spec P12)") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy()};
  nn::Optimizer optimizer{job.strategy(), net, nn::Adam{.learning_rate = 0.5F}};
  CHECK(optimizer.iterations(job.scope()) == 0);
  optimizer.set_iterations(job.scope(), 12);
  CHECK(optimizer.iterations(job.scope()) == 12);
  CHECK(optimizer.learning_rate() == 0.5F);
  optimizer.set_learning_rate(0.25F);
  CHECK(optimizer.learning_rate() == 0.25F);
  CHECK_THROWS_AS(optimizer.set_learning_rate(-1.0F), dist::InvalidArgument);

  nn::Optimizer scheduled{
      job.strategy(), net,
      nn::With{nn::SGD{}, nn::ExponentialDecay{.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 0.5F}}};
  scheduled.set_iterations(job.scope(), 2);
  CHECK(scheduled.learning_rate() == 0.25F);
  CHECK_THROWS_AS(scheduled.set_learning_rate(1.0F), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Optimizer{job.strategy(), net, nn::SGD{-1.0F}}), dist::InvalidArgument);
}

TEST_CASE("an optimizer reports that its network was destroyed") {
  ServedJob<Local> job(1, 1);
  auto net = std::make_unique<Small>(job.strategy());
  const nn::Optimizer optimizer{job.strategy(), *net, nn::SGD{}};
  net.reset();
  CHECK_THROWS_WITH_AS((void)optimizer.arguments(), doctest::Contains("after its network was destroyed"),
                       dist::InvalidArgument);
}

TEST_CASE("checkpoints of optimizers are exchangeable between servers and other strategies") {
  const auto function = nn::With{nn::Adam{.learning_rate = 0.25F}, nn::AverageWeights{}, nn::AccumulateGradients{2}};
  const support::TemporaryFolder folder;
  dist::Default alone;
  nn::Network<small::Dense> plain{alone, 1};
  nn::Optimizer optimizer{alone, plain, function};
  for (int step = 0; step < 4; ++step)
    alone.run([&](auto& replica) { small::take_step(replica, plain, optimizer, step); });
  const auto velocity = optimizer.slot(alone.scope(), "velocity", "dense/kernel");
  dist::Checkpoint{alone}.add("optimizer", optimizer).save(folder.path("plain"));
  {
    ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
    Small net{job.strategy()};
    nn::Optimizer on_servers{job.strategy(), net, function};
    dist::Checkpoint{job.strategy()}.add("optimizer", on_servers).restore(folder.path("plain"));
    CHECK(on_servers.iterations(job.scope()) == 2);
    CHECK(values_of(on_servers.slot(job.scope(), "velocity", "dense/kernel")) == values_of(velocity));
    on_servers.set_learning_rate(0.125F);
    dist::Checkpoint{job.strategy()}.add("optimizer", on_servers).save(folder.path("servers"));
  }
  nn::Network<small::Dense> other{alone, 1};
  nn::Optimizer restored{alone, other, function};
  dist::Checkpoint{alone}.add("optimizer", restored).restore(folder.path("servers"));
  CHECK(restored.iterations(alone.scope()) == 2);
  CHECK(restored.learning_rate() == 0.125F);
  CHECK(values_of(restored.slot(alone.scope(), "velocity", "dense/kernel")) == values_of(velocity));
}

TEST_CASE("checkpoints of metrics are exchangeable between servers and other strategies") {
  const support::TemporaryFolder folder;
  dist::Default alone;
  nn::Metric mean{alone, nn::MeanValue{}};
  mean.add(alone.scope(), {.total = 6, .count = 4});
  dist::Checkpoint{alone}.add("mean", mean).save(folder.path("plain"));
  {
    ServedJob<Local> job(1, 1);
    nn::Metric on_servers{job.strategy(), nn::MeanValue{}};
    dist::Checkpoint{job.strategy()}.add("mean", on_servers).restore(folder.path("plain"));
    CHECK(on_servers.result(job.scope()) == 1.5);
    dist::Checkpoint{job.strategy()}.add("mean", on_servers).save(folder.path("servers"));
  }
  mean.reset(alone.scope());
  dist::Checkpoint{alone}.add("mean", mean).restore(folder.path("servers"));
  CHECK(mean.result(alone.scope()) == 1.5);
}
