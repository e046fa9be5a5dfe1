#include <dist/coordinator/worker_copy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/flaky_transport.hpp"
#include "coordinator/served_job.hpp"
#include "coordinator/small_network.hpp"
#include "support/exception_suppressions.hpp"
#include "support/temporary_folder.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist_test::Counted;
using dist_test::Flaky;
using dist_test::ServedJob;

namespace {

using Small = nn::Network<small::Dense>;
using WithState = nn::Sequential<nn::Input<6>, nn::Dense<5>, nn::BatchNormalization<>, nn::Activate<nn::Relu>,
                                 nn::Dropout<25>, nn::Dense<3>>;

std::vector<float> values_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

/// Trains the same network under Default and on parameter servers, with one worker and a message for each parameter,
/// and compares all bits.
template <class Net, class O>
void check_same_as_default(const O& function, std::size_t shards = 2) {
  const int steps = 6;
  dist::Default alone;
  nn::Network<Net> expected{alone, 7};
  nn::Optimizer optimizer{alone, expected, function};

  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{shards}, .bucket_bytes = 1});
  auto& strategy = job.strategy();
  auto& coordinator = job.coordinator();
  nn::Network<Net> net{strategy, 7};
  nn::Optimizer on_servers{strategy, net, function};

  for (int step = 0; step < steps; ++step) {
    const float loss = alone.run([&](auto& replica) { return small::take_step(replica, expected, optimizer, step); });
    CHECK(coordinator.schedule(small::Train{}, net, on_servers, step).fetch() == loss);
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

TEST_CASE("one worker trains to the bits of Default, with optimizers with and without slots") {
  check_same_as_default<small::Dense>(nn::SGD{0.1F});
  check_same_as_default<small::Dense>(nn::SGD{0.1F, 0.9F, true});
  check_same_as_default<small::Dense>(nn::Adam{.learning_rate = 0.05F, .amsgrad = true});
  check_same_as_default<small::Dense>(nn::Adagrad{0.1F});
}

TEST_CASE("optimizers with options and schedules train to the bits of Default (spec P10, P11, P12)") {
  check_same_as_default<small::Dense>(nn::With{nn::Adam{.learning_rate = 0.05F}, nn::ClipNorm{0.1F},
                                               nn::WeightDecay{0.1F, {"bias"}}, nn::AverageWeights{0.5F}});
  check_same_as_default<small::Dense>(nn::With{
      nn::SGD{0.1F, 0.9F}, nn::GlobalClipNorm{0.2F},
      nn::WarmUp{2, nn::ExponentialDecay{.initial_learning_rate = 0.2F, .decay_steps = 2, .decay_rate = 0.5F}}});
  check_same_as_default<small::Dense>(
      nn::With{nn::Adam{.learning_rate = 0.05F}, nn::ClipValue{0.01F}, nn::AccumulateGradients{2}});
}

TEST_CASE("an optimizer that scales by norms uses the norms of whole parameters, and rejects divided ones") {
  check_same_as_default<small::Dense>(nn::Lamb{.learning_rate = 0.05F}, 1);
  check_same_as_default<small::Dense>(
      nn::With{nn::Lamb{.learning_rate = 0.05F}, nn::ClipNorm{0.1F}, nn::WeightDecay{0.1F, {"bias"}}}, 1);
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy()};
  CHECK(support::what_throws([&] {
          nn::Optimizer{job.strategy(), net, nn::Lamb{}};
        }) ==
        "Lamb cannot train a parameter that is divided among parameter servers (it scales each step by norms of a "
        "whole parameter, and dense/kernel has 2 shards, each with its own norm). Give the ParameterServer a "
        "partitioner that leaves the parameter whole, or no partitioner, or use nn::Adam or nn::AdamW.");
}

TEST_CASE("state of layers is on the servers: moving statistics and the counters of Dropout") {
  check_same_as_default<WithState>(nn::Adam{.learning_rate = 0.05F});
}

TEST_CASE("a step needs one pull and one push for each server") {
  ServedJob<Counted> job(2, 1, {.partitioner = dist::FixedShards{2}});
  nn::Network<WithState> net{job.strategy()};
  const nn::Optimizer optimizer{job.strategy(), net, nn::Adam{}};
  for (int step = 0; step < 3; ++step) {
    Counted::take("store.pull");
    Counted::take("store.push");
    job.coordinator().schedule(small::Train{}, net, optimizer, step);
    job.coordinator().join();
    CHECK(Counted::take("store.pull") == 2);
    CHECK(Counted::take("store.push") == 2);
  }
}

TEST_CASE("pulls overlap with batch preparation and forward, and pushes with backward") {
  ServedJob<Counted> job(1, 1, {.bucket_bytes = 1});
  nn::Network<small::Dense> net{job.strategy(), 7};
  const nn::Optimizer optimizer{job.strategy(), net, nn::Adam{}};
  const auto step = [](auto& replica, auto& its_net, auto& its_optimizer) {
    std::vector<std::uint64_t> counts;
    const auto note = [&](const char* what) { counts.push_back(Counted::take(what)); };
    note("store.pull");
    note("store.pull reply");
    const small::Batch batch = small::batch_of(0);
    const auto outputs = its_net.forward(replica, batch.x);
    note("store.pull reply");
    const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, batch.y, small::rows);
    const auto push = its_optimizer.when_ready(replica);
    its_net.backward(replica, loss, [&](dist::IndexRange elements) {
      push(elements);
      note("store.push");
    });
    note("store.push reply");
    its_optimizer.apply_gradients(replica);
    return counts;
  };
  for (const char* what : {"store.pull", "store.pull reply", "store.push", "store.push reply"}) Counted::take(what);
  const std::vector<std::uint64_t> counts = job.coordinator().schedule(step, net, optimizer).fetch();
  // Four pulls are pending when the function begins, and complete when the output is there. The gradients of the second
  // layer are sent before the gradients of the first are computed; those follow at the end, with the step counter.
  CHECK(counts == std::vector<std::uint64_t>{4, 0, 4, 1, 0, 0});
  CHECK(Counted::take("store.push") == 1);
  CHECK(Counted::take("store.push reply") == 2);
  CHECK(optimizer.iterations(job.scope()) == 1);
}

TEST_CASE("a function can read parameters that are still arriving") {
  ServedJob<Local> job(1, 1, {.bucket_bytes = 1});
  Small net{job.strategy(), 7};
  net.assign_parameter(job.scope(), "dense_1/bias", 5.0F);
  const auto by_name = [](auto& replica, auto& its_net) { return its_net.template parameter<1, 1>(replica)[2]; };
  CHECK(job.coordinator().schedule(by_name, net).fetch() == 5);
  net.assign_parameter(job.scope(), "dense_1/bias", 6.0F);
  // A function without reads ends during the pulls, which are repeated.
  job.coordinator().schedule([](auto&, auto&) {}, net);
  const auto by_place = [](auto& replica, auto& its_net, std::size_t place) {
    return its_net.parameters().read(replica)[place];
  };
  CHECK(job.coordinator().schedule(by_place, net, net.layout()[3].offset + 2).fetch() == 6);
}

TEST_CASE("several workers count all their updates, with the learning rate of the coordinator") {
  ServedJob<Local> job(2, 3, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy()};
  nn::Optimizer optimizer{job.strategy(), net, nn::SGD{0.1F, 0.5F}};
  const auto last_loss = [&](int steps) {
    dist::RemoteValue<float> loss;
    for (int step = 0; step < steps; ++step) loss = job.coordinator().schedule(small::Train{}, net, optimizer, 0);
    job.coordinator().join();
    return loss.fetch();
  };
  const float first = last_loss(1);
  CHECK(last_loss(150) < first / 2);
  CHECK(optimizer.iterations(job.scope()) == 151);
  const auto kernel = values_of(net.parameter(job.scope(), "dense/kernel"));
  // Three parameters in two shards, and a bias of three elements.
  CHECK(dist::staleness(job.scope(), net.parameters()).pushes == 8 * 151);

  optimizer.set_learning_rate(0);
  for (const nn::Parameter& parameter : net.layout()) {
    const dist::Tensor<float> still{parameter.shape};
    optimizer.assign_slot(job.scope(), "momentum", parameter.name(), still);
  }
  (void)last_loss(20);
  CHECK(values_of(net.parameter(job.scope(), "dense/kernel")) == kernel);
}

TEST_CASE("gradients of several backward passes in a step are applied in order, and a step that throws applies none") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy(), 7};
  const nn::Optimizer optimizer{job.strategy(), net, nn::Adam{.learning_rate = 0.05F}};
  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 7};
  nn::Optimizer expected_optimizer{alone, expected, nn::Adam{.learning_rate = 0.05F}};
  // Both gradients of a step are computed from the parameters at its beginning.
  const auto twice = [](auto& replica, auto& its_net, auto& its_optimizer, bool throws) {
    small::take_step(replica, its_net, its_optimizer, 0);
    if (throws) throw dist::InvalidArgument("A step failed", "it was to", "Nothing");
    small::take_step(replica, its_net, its_optimizer, 0);
  };
  job.coordinator().schedule(twice, net, optimizer, true);
  CHECK_THROWS_AS(job.coordinator().join(), dist::RemoteError);
  CHECK(optimizer.iterations(job.scope()) == 0);
  job.coordinator().schedule(twice, net, optimizer, false);
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

TEST_CASE("a gradient staler than the strategy's limit is rejected and counted") {
  static Small* disturbed;
  for (const std::uint64_t max_staleness : {0U, 1U}) {
    ServedJob<Local> job(1, 1, {.max_staleness = max_staleness});
    Small net{job.strategy(), 7};
    const nn::Optimizer optimizer{job.strategy(), net, nn::SGD{0.1F}};
    disturbed = &net;
    static auto* strategy = &job.strategy();
    strategy = &job.strategy();
    const auto kernel = values_of(net.parameter(job.scope(), "dense/kernel"));
    const auto bias = values_of(net.parameter(job.scope(), "dense/bias"));
    job.coordinator().schedule(
        [](auto& replica, auto& its_net, auto& its_optimizer) {
          // An update by another client in between.
          const auto scope = strategy->scope();
          disturbed->assign_parameter(scope, "dense/kernel", disturbed->parameter(scope, "dense/kernel"));
          small::take_step(replica, its_net, its_optimizer, 0);
        },
        net, optimizer);
    job.coordinator().join();
    CHECK((values_of(net.parameter(job.scope(), "dense/kernel")) == kernel) == (max_staleness == 0));
    CHECK(values_of(net.parameter(job.scope(), "dense/bias")) != bias);
    CHECK(dist::staleness(job.scope(), net.parameters()).refused == 1 - max_staleness);
    CHECK(optimizer.iterations(job.scope()) == 1);
  }
}

TEST_CASE("each gradient is applied once") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy()};
  const nn::Optimizer optimizer{job.strategy(), net, nn::SGD{}};
  job.coordinator().schedule([](auto& replica, auto&, auto& its_optimizer) { its_optimizer.apply_gradients(replica); },
                             net, optimizer);
  CHECK_THROWS_WITH_AS(job.coordinator().join(), doctest::Contains("A network has no gradients to apply"),
                       dist::RemoteError);
}

TEST_CASE("later steps of a function see the pushes of earlier ones") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy(), 7};
  const nn::Optimizer optimizer{job.strategy(), net, nn::Adam{.learning_rate = 0.05F}};
  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 7};
  nn::Optimizer expected_optimizer{alone, expected, nn::Adam{.learning_rate = 0.05F}};
  const auto three = [](auto& replica, auto& its_net, auto& its_optimizer) {
    std::vector<float> losses;
    for (int step = 0; step < 3; ++step) {
      if (step > 0) replica.next_step();
      losses.push_back(small::take_step(replica, its_net, its_optimizer, step));
    }
    return losses;
  };
  const std::vector<float> losses = job.coordinator().schedule(three, net, optimizer).fetch();
  for (int step = 0; step < 3; ++step)
    CHECK(losses[static_cast<std::size_t>(step)] ==
          alone.run([&](auto& replica) { return small::take_step(replica, expected, expected_optimizer, step); }));
}

TEST_CASE("a metric sums over all workers, and the coordinator reads it (spec J13)") {
  ServedJob<Local> job(2, 3);
  nn::Metric mean{job.strategy(), nn::MeanValue{.name = "mean"}};
  nn::Metric matrix{job.strategy(), nn::ConfusionMatrix{.classes = 2}};
  const auto measure = [](auto& replica, auto& its_mean, auto& its_matrix, float value) {
    its_mean.update(replica, value, 1.0F);
    dist::Tensor<float> outputs{{1, 2}};
    outputs[0] = value;
    const dist::Tensor<std::int32_t> targets{{1}};
    its_matrix.update(replica, outputs, targets);
  };
  for (int i = 1; i <= 8; ++i) job.coordinator().schedule(measure, mean, matrix, static_cast<float>(i));
  job.coordinator().join();
  CHECK(mean.result(job.scope()) == 4.5);
  CHECK(matrix.counts(job.scope())[0] == 8);
  mean.update(job.scope(), 18.0F, 1.0F);
  CHECK(mean.result(job.scope()) == 6);
  mean.reset(job.scope());
  matrix.reset(job.scope());
  job.coordinator().schedule(measure, mean, matrix, 3.0F);
  job.coordinator().join();
  CHECK(mean.result(job.scope()) == 3);
  CHECK(matrix.counts(job.scope())[0] == 1);
}

TEST_CASE("rows of a table on the servers are updated to the bits of Default, with slots (spec P14)") {
  const auto slices_of = [](int step) {
    dist::IndexedSlices<float> slices{{step % 5, 3, 3}, {{3, 2}, {1, 2, 0.5F, 0.25F, 2, -1}}, {5, 2}};
    return slices;
  };
  const nn::Adam function{.learning_rate = 0.1F};
  dist::Default alone;
  auto expected = alone.variable<float>({5, 2}, 1.0F, "table");
  nn::SlicesOptimizer expected_optimizer{alone, expected, function};
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto table = job.strategy().variable<float>({5, 2}, 1.0F, "table");
  const nn::SlicesOptimizer other{job.strategy(), table, nn::Adagrad{}};  // has its own slots
  nn::SlicesOptimizer optimizer{job.strategy(), table, function};
  const auto step = [](auto& replica, auto& its_optimizer, const dist::IndexedSlices<float>& slices, bool throws) {
    its_optimizer.apply_slices(replica, slices);
    if (throws) throw dist::InvalidArgument("A step failed", "it was to", "Nothing");
  };
  job.coordinator().schedule(step, optimizer, slices_of(0), true);
  CHECK_THROWS_AS(job.coordinator().join(), dist::RemoteError);
  for (int number = 0; number < 6; ++number) {
    alone.run([&](auto& replica) { expected_optimizer.apply_slices(replica, slices_of(number)); });
    job.coordinator().schedule(step, optimizer, slices_of(number), false);
    job.coordinator().join();
  }
  const auto scope = job.scope();
  CHECK(optimizer.iterations(scope) == 6);
  CHECK(values_of(table.read(scope)) == values_of(expected.whole(alone.scope())));
  CHECK(values_of(table.read_slot(scope, 0)) == std::vector<float>(10, 0.0F));
  const support::TemporaryFolder folder;
  dist::Checkpoint{job.strategy()}.add("optimizer", optimizer).save(folder.path("servers"));
  nn::SlicesOptimizer restored{alone, expected, function};
  dist::Checkpoint{alone}.add("optimizer", restored).restore(folder.path("servers"));
  CHECK(restored.iterations(alone.scope()) == 6);
}

TEST_CASE("a lost worker creates its copies again, and continues from the servers' state (spec L14)") {
  ServedJob<Flaky> job(2, 1, {.partitioner = dist::FixedShards{2}});
  nn::Network<small::Dense> net{job.strategy(), 7};
  const nn::Optimizer optimizer{job.strategy(), net, nn::Adam{.learning_rate = 0.05F}};
  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 7};
  nn::Optimizer expected_optimizer{alone, expected, nn::Adam{.learning_rate = 0.05F}};
  for (int step = 0; step < 4; ++step) {
    // The third function does not reach the worker, which ends the session.
    if (step == 2) Flaky::fail(job.strategy().worker_endpoints()[0], "worker/run", {.before = true});
    CHECK(job.coordinator().schedule(small::Train{}, net, optimizer, step).fetch() ==
          alone.run([&](auto& replica) { return small::take_step(replica, expected, expected_optimizer, step); }));
  }
  CHECK(job.coordinator().metrics().lost == 1);
}

TEST_CASE("an object of another strategy is rejected, and a worker cannot create variables") {
  ServedJob<Local> job(1, 1), other(1, 1);
  Small net{other.strategy()};
  CHECK_THROWS_WITH_AS(job.coordinator().schedule([](auto&, auto&) {}, net),
                       doctest::Contains("An object of another strategy was given to a scheduled function"),
                       dist::WrongStrategy);
  // Only the coordinator creates variables.
  CHECK_THROWS_WITH_AS(job.coordinator().schedule([](auto& replica) { Small made{replica.strategy()}; }).fetch(),
                       doctest::Contains("the variables of a ParameterServer are made on the coordinator"),
                       dist::RemoteError);
}
