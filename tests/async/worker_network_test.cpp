#include <dist/async/worker_network.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/schedules/exponential_decay.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/partitioner.hpp>

#include "async/served_job.hpp"
#include "async/small_network.hpp"
#include "support/exception_suppressions.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist_test::Counted;
using dist_test::ServedJob;

namespace {

using Small = nn::ServerNetwork<small::Dense, nn::Reference, Local>;
using WithState = nn::Sequential<nn::Input<6>, nn::Dense<5>, nn::BatchNormalization<>, nn::Activate<nn::Relu>,
                                 nn::Dropout<25>, nn::Dense<3>>;

std::vector<float> values_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

/// Trains the same network under Default and on parameter servers, by one worker, with a message for each parameter, and compares
/// all bits.
template <class Net, class O>
void check_same_as_default(const O& function, std::size_t shards = 2) {
  const int steps = 6;
  dist::Default alone;
  nn::Network<Net> expected{alone, 7};
  nn::Optimizer optimizer{alone, expected, function};

  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{shards}});
  auto& strategy = job.strategy();
  auto& coordinator = job.coordinator();
  nn::ServerNetwork<Net, nn::Reference, Local> net{strategy, 7, {.bytes_per_message = 1}};
  nn::ServerOptimizer on_servers{strategy, net, function};
  const auto replicas = nn::create_per_worker_network(coordinator, on_servers);

  for (int step = 0; step < steps; ++step) {
    const float loss = alone.run([&](auto& replica) { return small::take_step(replica, expected, optimizer, step); });
    CHECK(coordinator.schedule(small::Train{}, replicas, step).fetch() == loss);
  }
  coordinator.join();
  const auto scope = strategy.scope();
  CHECK(on_servers.iterations(scope) == optimizer.iterations(alone.scope()));
  CHECK(on_servers.learning_rate() == optimizer.learning_rate());
  optimizer.finalize(alone.scope());
  on_servers.finalize(scope);
  for (const nn::Parameter& parameter : net.layout()) {
    CAPTURE(parameter.name());
    CHECK(values_of(net.parameter(scope, parameter.name())) ==
          values_of(expected.parameter(alone.scope(), parameter.name())));
    for (const auto& slot : optimizer.slots()) {
      const std::string name = slot.name().substr(slot.name().find('/') + 1);
      CAPTURE(name);
      CHECK(values_of(on_servers.slot(scope, name, parameter.name())) ==
            values_of(optimizer.slot(alone.scope(), name, parameter.name())));
    }
  }
}

}  // namespace

TEST_CASE("one worker trains to the bits of Default, by optimizers with and without slots") {
  check_same_as_default<small::Dense>(nn::SGD{0.1F});
  check_same_as_default<small::Dense>(nn::SGD{0.1F, 0.9F, true});
  check_same_as_default<small::Dense>(nn::Adam{.learning_rate = 0.05F, .amsgrad = true});
  check_same_as_default<small::Dense>(nn::Adagrad{0.1F});
}

TEST_CASE("so do optimizers with options and schedules (spec P10, P11, P12)") {
  check_same_as_default<small::Dense>(nn::With{nn::Adam{.learning_rate = 0.05F}, nn::ClipNorm{0.1F},
                                               nn::WeightDecay{0.1F, {"bias"}}, nn::AverageWeights{0.5F}});
  check_same_as_default<small::Dense>(nn::With{
      nn::SGD{0.1F, 0.9F}, nn::GlobalClipNorm{0.2F},
      nn::WarmUp{2, nn::ExponentialDecay{.initial_learning_rate = 0.2F, .decay_steps = 2, .decay_rate = 0.5F}}});
  check_same_as_default<small::Dense>(
      nn::With{nn::Adam{.learning_rate = 0.05F}, nn::ClipValue{0.01F}, nn::AccumulateGradients{2}});
}

TEST_CASE("an optimizer that scales by norms takes those of whole parameters, and refuses one in shards") {
  check_same_as_default<small::Dense>(nn::Lamb{.learning_rate = 0.05F}, 1);
  check_same_as_default<small::Dense>(
      nn::With{nn::Lamb{.learning_rate = 0.05F}, nn::ClipNorm{0.1F}, nn::WeightDecay{0.1F, {"bias"}}}, 1);
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy()};
  CHECK(
      support::what_throws([&] {
        nn::ServerOptimizer{job.strategy(), net, nn::Lamb{}};
      }) ==
      "Lamb cannot train a parameter that is divided among parameter servers (it scales each step by norms of a whole "
      "parameter, and dense/kernel has 2 shards, each with a norm of its own). Give the ParameterServer a partitioner "
      "that leaves the parameter whole, or none, or use nn::Adam or nn::AdamW.");
}

TEST_CASE("what layers keep is on the servers, too: moving statistics and the numbers of Dropout") {
  check_same_as_default<WithState>(nn::Adam{.learning_rate = 0.05F});
}

TEST_CASE("a step is one pull and one push of each server") {
  ServedJob<Counted> job(2, 1, {.partitioner = dist::FixedShards{2}});
  nn::ServerNetwork<WithState, nn::Reference, Counted> net{job.strategy()};
  const nn::ServerOptimizer optimizer{job.strategy(), net, nn::Adam{}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  for (int step = 0; step < 3; ++step) {
    Counted::take("store.pull");
    Counted::take("store.push");
    job.coordinator().schedule(small::Train{}, replicas, step);
    job.coordinator().join();
    CHECK(Counted::take("store.pull") == 2);
    CHECK(Counted::take("store.push") == 2);
  }
}

TEST_CASE("parameters come while the next batch is made and layers are computed, and gradients leave during backward") {
  ServedJob<Counted> job(1, 1);
  nn::ServerNetwork<small::Dense, nn::Reference, Counted> net{job.strategy(), 7, {.bytes_per_message = 1}};
  const nn::ServerOptimizer optimizer{job.strategy(), net, nn::Adam{}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  const auto step = [](dist::WorkerContext& worker, auto& its_net) {
    std::vector<std::uint64_t> counts;
    const auto note = [&](const char* what) { counts.push_back(Counted::take(what)); };
    const auto prepare = [&] {
      note("store.pull");
      note("store.pull reply");
      return small::batch_of(0);
    };
    its_net.run(worker, prepare, [&](auto& replica, const small::Batch& batch) {
      note("store.pull reply");
      const auto outputs = its_net.forward(replica, batch.x);
      note("store.pull reply");
      const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, batch.y, small::rows);
      const auto push = its_net.push_when_ready(replica);
      its_net.backward(replica, loss, [&](dist::IndexRange elements) {
        push(elements);
        note("store.push");
      });
      note("store.push reply");
      its_net.apply_gradients(replica);
    });
    note("store.push");
    note("store.push reply");
    return counts;
  };
  for (const char* what : {"store.pull", "store.pull reply", "store.push", "store.push reply"}) Counted::take(what);
  const std::vector<std::uint64_t> counts = job.coordinator().schedule(step, replicas).fetch();
  // Four pulls are on their way, of which one is waited for, and then the other three. The gradients of the second layer leave
  // before those of the first are there, which leave at the end with the count of the step.
  CHECK(counts == std::vector<std::uint64_t>{4, 0, 1, 3, 1, 0, 0, 1, 2});
  CHECK(optimizer.iterations(job.scope()) == 1);
}

TEST_CASE("what a function reads of parameters that still come is there") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy(), 7, {.bytes_per_message = 1}};
  const nn::ServerOptimizer optimizer{job.strategy(), net, nn::SGD{}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  net.assign_parameter(job.scope(), "dense_1/bias", 5.0F);
  const auto by_name = [](dist::WorkerContext& worker, auto& its_net) {
    return its_net.run(worker, [&](auto& replica) { return its_net.template parameter<1, 1>(replica)[2]; });
  };
  CHECK(job.coordinator().schedule(by_name, replicas).fetch() == 5);
  net.assign_parameter(job.scope(), "dense_1/bias", 6.0F);
  // A function that reads none ends with pulls on their way, which are made anew.
  job.coordinator().schedule([](dist::WorkerContext& worker, auto& its_net) { its_net.run(worker, [](auto&) {}); },
                             replicas);
  const auto by_place = [](dist::WorkerContext& worker, auto& its_net, std::size_t place) {
    return its_net.run(worker, [&](auto& replica) { return its_net.parameters().component(replica)[place]; });
  };
  CHECK(job.coordinator().schedule(by_place, replicas, net.layout()[3].offset + 2).fetch() == 6);
}

TEST_CASE("several workers count all their updates, by the learning rate that the coordinator sets") {
  ServedJob<Local> job(2, 3, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy()};
  nn::ServerOptimizer optimizer{job.strategy(), net, nn::SGD{0.1F, 0.5F}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  const auto last_loss = [&](int steps) {
    dist::RemoteValue<float> loss;
    for (int step = 0; step < steps; ++step) loss = job.coordinator().schedule(small::Train{}, replicas, 0);
    job.coordinator().join();
    return loss.fetch();
  };
  const float first = last_loss(1);
  CHECK(last_loss(150) < first / 2);
  CHECK(optimizer.iterations(job.scope()) == 151);
  const auto kernel = values_of(net.parameter(job.scope(), "dense/kernel"));
  CHECK(net.variable("dense/kernel").staleness(job.scope()).pushes == 2 * 151);

  optimizer.set_learning_rate(0);
  for (const nn::Parameter& parameter : net.layout()) {
    const dist::Tensor<float> still{parameter.shape};
    optimizer.assign_slot(job.scope(), "momentum", parameter.name(), still);
  }
  (void)last_loss(20);
  CHECK(values_of(net.parameter(job.scope(), "dense/kernel")) == kernel);
}

TEST_CASE(
    "gradients of several backwards in a step are applied one after another, and a step that throws applies none") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy(), 7};
  const nn::ServerOptimizer optimizer{job.strategy(), net, nn::Adam{.learning_rate = 0.05F}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 7};
  nn::Optimizer expected_optimizer{alone, expected, nn::Adam{.learning_rate = 0.05F}};
  // Both gradients of a step come from the parameters with which it began.
  const auto twice = [](dist::WorkerContext& worker, auto& its_net, bool throws) {
    its_net.run(worker, [&](auto& replica) {
      small::take_step(replica, its_net, its_net, 0);
      if (throws) throw dist::InvalidArgument("A step failed", "it was to", "Nothing");
      small::take_step(replica, its_net, its_net, 0);
    });
  };
  job.coordinator().schedule(twice, replicas, true);
  CHECK_THROWS_AS(job.coordinator().join(), dist::RemoteError);
  CHECK(optimizer.iterations(job.scope()) == 0);
  job.coordinator().schedule(twice, replicas, false);
  job.coordinator().join();
  CHECK(optimizer.iterations(job.scope()) == 2);
  alone.run([&](auto& replica) {
    small::take_step(replica, expected, expected_optimizer, 0);
    expected.renew_gradients(replica);
    expected_optimizer.apply_gradients(replica);
  });
  for (const nn::Parameter& parameter : net.layout())
    CHECK(values_of(net.parameter(job.scope(), parameter.name())) ==
          values_of(expected.parameter(alone.scope(), parameter.name())));
}

TEST_CASE("a gradient that is more stale than its optimizer allows is refused and counted") {
  for (const std::uint64_t max_staleness : {0U, 1U}) {
    ServedJob<Local> job(1, 1);
    Small net{job.strategy(), 7};
    const nn::ServerOptimizer optimizer{job.strategy(), net, nn::SGD{0.1F}, {.max_staleness = max_staleness}};
    const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
    const auto kernel = values_of(net.parameter(job.scope(), "dense/kernel"));
    const auto bias = values_of(net.parameter(job.scope(), "dense/bias"));
    job.coordinator().schedule(
        [](dist::WorkerContext& worker, auto& its_net, auto& its_kernel) {
          its_net.run(worker, [&](auto& replica) {
            its_kernel.assign_add(worker, 0);  // an update in between
            small::take_step(replica, its_net, its_net, 0);
          });
        },
        replicas, net.variable("dense/kernel"));
    job.coordinator().join();
    CHECK((values_of(net.parameter(job.scope(), "dense/kernel")) == kernel) == (max_staleness == 0));
    CHECK(values_of(net.parameter(job.scope(), "dense/bias")) != bias);
    CHECK(net.variable("dense/kernel").staleness(job.scope()).refused == 1 - max_staleness);
    CHECK(optimizer.iterations(job.scope()) == 1);
  }
}

TEST_CASE("gradients are applied in the run of a network, once each") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy()};
  const nn::ServerOptimizer optimizer{job.strategy(), net, nn::SGD{}};
  const auto replicas = nn::create_per_worker_network(job.coordinator(), optimizer);
  job.coordinator().schedule(
      [](dist::WorkerContext& worker, auto& its_net) {
        its_net.run(worker, [&](auto& replica) { its_net.apply_gradients(replica); });
      },
      replicas);
  CHECK_THROWS_WITH_AS(job.coordinator().join(),
                       doctest::Contains("A network's gradients were to be applied, and there are none"),
                       dist::RemoteError);
  job.coordinator().schedule(
      [](dist::WorkerContext&, auto& its_net) {
        its_net.strategy().run([&](auto& replica) { its_net.apply_gradients(replica); });
      },
      replicas);
  CHECK_THROWS_WITH_AS(job.coordinator().join(), doctest::Contains("pushed outside a step"), dist::RemoteError);
}
