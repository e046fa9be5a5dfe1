#include <dist/nn/gradient_storage.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/track.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "support/allocations.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;

namespace {

/// With batches of 3 rows, two layers are not stored: the first Dense is 40 x 17, and 3 (40 + 17) < 40 x 17; the second
/// is 17 x 5, and 3 (17 + 5) < 17 x 5; the last is 5 x 4, but 3 (5 + 4) >= 5 x 4.
using Net = nn::Sequential<nn::Input<40>, nn::Dense<17, nn::Relu>, nn::Dense<5, nn::Relu>, nn::Dense<4>>;
using Owned = nn::OwnerComputedGradients<3>;

template <class Layer>
constexpr bool stored_by_batch_of_3 = Owned::stores<Layer>;

static_assert(!stored_by_batch_of_3<Net::Layer<0>>);
static_assert(!stored_by_batch_of_3<Net::Layer<1>>);
static_assert(stored_by_batch_of_3<Net::Layer<2>>);
static_assert(nn::StoredGradients::stores<Net::Layer<0>>);
using Image = nn::Sequential<nn::Input<8, 8, 1>, nn::Conv2D<2, 3>, nn::Flatten, nn::Dense<9>>;
static_assert(stored_by_batch_of_3<Image::Layer<0>> && stored_by_batch_of_3<Image::Layer<1>>);
static_assert(!stored_by_batch_of_3<Image::Layer<2>>);
// A product along the last axis has a row for each of 4 x 5 positions: 3 x 20 (8 + 9) >= 8 x 9.
static_assert(stored_by_batch_of_3<nn::Sequential<nn::Input<4, 5, 8>, nn::Dense<9>>::Layer<0>>);
static_assert(!nn::Network<Net, nn::Reference, double, Owned>::stores_gradients);
static_assert(nn::Network<Net, nn::Reference, double>::stores_gradients);
static_assert(nn::Network<Net, nn::Reference, double, nn::OwnerComputedGradients<1000>>::stores_gradients);

struct Numbers {
  using Element = float;
};
struct Trainable {
  Numbers& parameters();
  Numbers gradients();
};
struct GradientMisspelt {
  Numbers& parameters();
  Numbers gradient();
};
struct WithoutParameters {
  Numbers gradients();
};
static_assert(nn::TrainableNetwork<Trainable> && nn::TrainableNetwork<nn::Network<Net>> &&
              nn::TrainableNetwork<nn::Network<Net, nn::Reference, double, Owned>>);
static_assert(!nn::TrainableNetwork<GradientMisspelt> && !nn::TrainableNetwork<WithoutParameters> &&
              !nn::TrainableNetwork<Net> && !nn::TrainableNetwork<void>);
// Optional for networks in general, but not for nn::Network.
using Whole = nn::Network<Net>;
static_assert(nn::HasLayout<Whole> && nn::HasLifetime<Whole> && Whole::stores_gradients &&
              nn::TakesGradients<Whole, dist::ReplicaContext<dist::Default>>);
static_assert(!nn::HasLayout<Trainable> && !nn::HasLifetime<Trainable> && nn::detail::stores_gradients<Trainable> &&
              !nn::TakesGradients<Trainable, dist::ReplicaContext<dist::Default>>);

/// Trains on synthetic data. Replica r of R gets rows [9 r / R, 9 (r + 1) / R) of 9, unless `first_rows` is at most 9.
template <class Storage, class Model = Net, class Strategy, class O>
std::vector<double> trained(Strategy& strategy, const O& function, int steps, std::size_t first_rows = 99) {
  nn::Network<Model, nn::Reference, double, Storage> net{strategy, 5};
  nn::Optimizer optimizer{strategy, net, function};
  constexpr std::size_t rows = 9;
  dist::Tensor<double> x{Model::InputShape::shape().stacked(rows)};
  dist::Tensor<std::int32_t> labels{dist::Shape{rows}};
  const dist::RandomStream random{11};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform<double>(i) - 0.5;
  for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int32_t>(random.below(4, 5000 + i));
  const std::size_t replicas = strategy.num_replicas_in_sync();
  for (int step = 0; step < steps; ++step)
    strategy.run([&](auto& replica) {
      dist::IndexRange mine = dist::shard_of(rows, replica.replica_id().index(), replicas);
      // Uneven shares: replica 0 takes `first_rows`, the last one the rest.
      if (first_rows <= rows)
        mine = replica.replica_id().index() == 0              ? dist::IndexRange{0, first_rows}
               : replica.replica_id().index() + 1 == replicas ? dist::IndexRange{first_rows, rows}
                                                              : dist::IndexRange{rows, rows};
      const auto logits = net.forward(replica, dist::TensorView<const double>{x}.rows(mine.begin, mine.size()));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, logits, dist::TensorView<const std::int32_t>{labels}.rows(mine.begin, mine.size()), rows);
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
    });
  const auto parameters = net.parameters().read(strategy.scope());
  std::vector<double> values(parameters.data(), parameters.data() + parameters.size());
  for (const auto& slot : optimizer.slots()) {
    const auto whole = slot.read(strategy.scope());
    values.insert(values.end(), whole.data(), whole.data() + whole.size());
  }
  return values;
}

void check_equal(const std::vector<double>& one, const std::vector<double>& other) {
  REQUIRE(one.size() == other.size());
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    largest = std::max(largest, std::abs(one[i] - other[i]) / (1 + std::abs(one[i])));
  CHECK(largest < 1e-12);
}

template <class Strategy, class O>
void check_against_stored(Strategy&& strategy, const O& function) {
  CAPTURE(strategy.describe());
  CAPTURE(O::name);
  const auto stored = trained<nn::StoredGradients>(strategy, function, 6);
  check_equal(trained<Owned>(strategy, function, 6), stored);
  const auto again = trained<Owned>(strategy, function, 6);
  CHECK(again == trained<Owned>(strategy, function, 6));  // the same bits every time
  // A replica without rows updates its share, too.
  for (const std::size_t first : {std::size_t{0}, std::size_t{2}, std::size_t{9}})
    check_equal(trained<Owned>(strategy, function, 3, first),
                trained<nn::StoredGradients>(strategy, function, 3, first));
}

}  // namespace

TEST_CASE_TEMPLATE("gradients computed by their owners train like stored ones, on 1, 2, 3, 4 and 8 replicas (spec P07)",
                   O, nn::SGD, nn::Adam) {
  const O function{.learning_rate = 0.01f};
  check_against_stored(dist::Default{}, function);
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{8}}) {
    check_against_stored(dist::Mirrored<dist::ThreadAllReduce>{replicas}, function);
    check_against_stored(dist::CentralStorage<dist::Cpu>{replicas}, function);
  }
  check_against_stored(dist::Mirrored<dist::RingAllReduce>{3}, function);
}

TEST_CASE("owners compute gradients of a layer on several axes, and without bias") {
  using Positions = nn::Sequential<nn::Input<2, 20>, nn::Dense<50, nn::Relu, nn::GlorotUniform, nn::NoBias>,
                                   nn::Flatten, nn::Dense<4>>;
  static_assert(!stored_by_batch_of_3<Positions::Layer<0>> && !stored_by_batch_of_3<Positions::Layer<2>>);
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const nn::Adam function{.learning_rate = 0.01f};
  check_equal(trained<Owned, Positions>(strategy, function, 6),
              trained<nn::StoredGradients, Positions>(strategy, function, 6));
}

TEST_CASE("elementwise options work with owner-computed gradients") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  check_against_stored(strategy, nn::With{nn::Adam{.learning_rate = 0.01f}, nn::ClipValue{0.01f}});
  check_against_stored(strategy,
                       nn::With{nn::SGD{.learning_rate = 0.1f, .momentum = 0.9f}, nn::WeightDecay{.rate = 0.01f}});
}

TEST_CASE("all mirrors have equal bits after a step, and a steady step does not allocate") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  nn::Network<Net, nn::Reference, double, Owned> net{strategy, 5};
  nn::Optimizer optimizer{strategy, net, nn::Adam{}};
  dist::Tensor<double> x{dist::Shape{3, 40}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
  const dist::Tensor<std::int32_t> labels{dist::Shape{3}};
  const auto step = [&](auto& replica) {
    const auto logits = net.forward(replica, dist::TensorView<const double>{x});
    net.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, labels.view(), 9));
    optimizer.apply_gradients(replica);
  };
  strategy.run(step);
  const std::size_t before = allocations.load();
  strategy.run(step);
  CHECK(allocations.load() == before);
  const auto first = net.parameters().component(strategy.scope(), 0);
  for (std::size_t replica = 1; replica < 3; ++replica) {
    const auto other = net.parameters().component(strategy.scope(), replica);
    CHECK(std::equal(first.begin(), first.end(), other.begin()));
  }
}

TEST_CASE("apply_gradients without the activations of a backward is rejected") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, nn::Reference, double, Owned> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
  const dist::Tensor<double> x{dist::Shape{2, 40}};
  const auto refusal = [&](auto&& step) {
    std::string message;
    try {
      strategy.run(step);
    } catch (const dist::ReplicaError& error) {
      CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::InvalidArgument);
      message = error.what();
    }
    return message;
  };
  CHECK(refusal([&](auto& replica) {
          static_cast<void>(net.forward(replica, dist::TensorView<const double>{x}));
          net.backward(replica, 0);
          static_cast<void>(net.forward(replica, dist::TensorView<const double>{x}, nn::inference));
          optimizer.apply_gradients(replica);
        }).find("has not called backward since its last forward") != std::string::npos);
}

TEST_CASE_TEMPLATE("gradients are applied once for each backward", Storage, nn::StoredGradients, Owned) {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, nn::Reference, double, Storage> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
  const dist::Tensor<double> x{dist::Shape{2, 40}};
  const auto compute = [&](auto& replica) {
    static_cast<void>(net.forward(replica, dist::TensorView<const double>{x}));
    net.backward(replica, 0);
  };
  const auto refusal = [&](auto&& step) {
    return support::what_throws<dist::ReplicaError>([&] { strategy.run(step); });
  };
  CHECK(refusal([&](auto& replica) {
          optimizer.apply_gradients(replica);
        }).find("A network has no gradients to apply (replica ") != std::string::npos);
  CHECK(refusal([&](auto& replica) {
          static_cast<void>(net.forward(replica, dist::TensorView<const double>{x}));
          optimizer.apply_gradients(replica);
        })
            .find("has not called backward yet). Call forward, a loss and backward before each apply_gradients, or "
                  "renew_gradients to apply them again.") != std::string::npos);
  const auto twice = refusal([&](auto& replica) {
    compute(replica);
    optimizer.apply_gradients(replica);
    optimizer.apply_gradients(replica);
  });
  CHECK(twice.find("has already applied the gradients of its last backward") != std::string::npos);
  for (int step = 0; step < 2; ++step)
    strategy.run([&](auto& replica) {
      compute(replica);
      optimizer.apply_gradients(replica);
    });
  strategy.run([&](auto& replica) {
    net.renew_gradients(replica);
    optimizer.apply_gradients(replica);
  });
}

TEST_CASE("gradients written by the program are applied") {
  dist::Default strategy;
  nn::Network<Net, nn::Reference, double> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 1.0f}};
  strategy.run([&](auto& replica) {
    const double before = net.parameters().component(replica)[0];
    net.gradients().component(replica)[0] = 0.25;
    optimizer.apply_gradients(replica);
    optimizer.apply_gradients(replica);
    CHECK(net.parameters().component(replica)[0] == before - 0.5);
  });
}

TEST_CASE("an optimizer reports that its network was destroyed") {
  dist::Default strategy;
  std::optional<nn::Network<Net, nn::Reference, double>> net{std::in_place, strategy};
  nn::Optimizer optimizer{strategy, *net, nn::SGD{}};
  net.reset();
  CHECK_THROWS_AS(dist::walk(optimizer, [](std::string_view, auto&) {}), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(strategy.run([&](auto& replica) { optimizer.apply_gradients(replica); }),
                       "Optimizer SGD was used after its network was destroyed (it refers to the network). Keep the "
                       "network alive as long as the optimizer.",
                       dist::InvalidArgument);
}

TEST_CASE("a kernel larger than the caches is updated on every mirror") {
  using Wide = nn::Sequential<nn::Input<1030>, nn::Dense<130, nn::Relu>, nn::Dense<3>>;
  static_assert(dist::detail::exceeds_caches<double>(1030 * 130));
  const auto trained_by = [](std::size_t replicas, auto storage) {
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    nn::Network<Wide, nn::Reference, double, decltype(storage)> net{strategy, 9};
    nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f}};
    dist::Tensor<double> x{dist::Shape{6, 1030}};
    dist::Tensor<std::int32_t> labels{dist::Shape{6}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 11) / 11 - 0.5;
    for (std::size_t i = 0; i < 6; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    for (int step = 0; step < 2; ++step)
      strategy.run([&](auto& replica) {
        const std::size_t share = 6 / replicas;
        const std::size_t first = replica.replica_id().index() * share;
        const auto logits = net.forward(replica, dist::TensorView<const double>{x}.rows(first, share));
        const auto part = dist::TensorView<const std::int32_t>{labels}.rows(first, share);
        net.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, part, 6));
        optimizer.apply_gradients(replica);
      });
    const auto mine = net.parameters().component(strategy.scope(), 0);
    for (std::size_t replica = 1; replica < replicas; ++replica) {
      const auto other = net.parameters().component(strategy.scope(), replica);
      CHECK(std::equal(mine.begin(), mine.end(), other.begin()));
    }
    return std::vector<double>(mine.begin(), mine.end());
  };
  const auto stored = trained_by(1, nn::StoredGradients{});
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    check_equal(trained_by(replicas, nn::OwnerComputedGradients<3>{}), stored);
}

TEST_CASE_TEMPLATE("reduce_and_apply of a network applies every gradient once, and an update may throw", Storage,
                   nn::StoredGradients, Owned) {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  nn::Network<Net, nn::Reference, double, Storage> net{strategy, 5};
  dist::Tensor<double> x{dist::Shape{2, 40}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5);
  const dist::Tensor<std::int32_t> labels{dist::Shape{2}};
  const auto pass = [&](auto& replica) {
    const auto logits = net.forward(replica, dist::TensorView<const double>{x});
    net.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, labels.view(), 6));
  };
  std::vector<int> visits(net.padded_count);
  strategy.run([&](auto& replica) {
    pass(replica);
    net.reduce_and_apply(replica, [&](std::size_t i, double weight, double) {
      ++visits[i];
      return weight;
    });
  });
  for (const nn::Parameter& parameter : net.layout())
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i) REQUIRE(visits[parameter.offset + i] == 1);
  for (int attempt = 0; attempt < 20; ++attempt)
    CHECK_THROWS_AS(strategy.run([&](auto& replica) {
      pass(replica);
      net.reduce_and_apply(replica, [&](std::size_t, double weight, double) {
        if (replica.replica_id().index() == 1) throw std::runtime_error("out of ink");
        return weight;
      });
    }),
                    dist::ReplicaError);
  strategy.run(pass);
}

TEST_CASE("slot returns the part of one parameter by name") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f, .momentum = 0.9f}};
  strategy.run([&](auto& replica) {
    // Gradients that add up to 2 in the last bias, and to 0 elsewhere.
    const std::span<float> gradients = net.gradients().component(replica);
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    for (float& element : net.template gradient<2, 1>(replica).elements()) element = 1;
    optimizer.apply_gradients(replica);
  });
  const auto scope = strategy.scope();
  CHECK(optimizer.slot(scope, "momentum", "dense_2/bias") == dist::Tensor<float>{{4}, {-1, -1, -1, -1}});
  CHECK(optimizer.slot(scope, "momentum", "dense_1/bias") == dist::Tensor<float>{dist::Shape{5}});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(optimizer.slot(scope, "velocity", "dense_2/bias")),
      "Optimizer SGD has no slot 'velocity' (it has SGD/momentum). Use the part after SGD/ of one of these names.",
      dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(optimizer.slot(scope, "momentum", "dense_3/bias")), dist::InvalidArgument);
}

TEST_CASE_TEMPLATE("assign_slot writes the part of one parameter on its owner", Maker, conformance::Make<dist::Default>,
                   conformance::Make<dist::Mirrored<dist::ThreadAllReduce>, 3>,
                   conformance::Make<dist::Mirrored<dist::RingAllReduce>, 2>,
                   conformance::Make<dist::CentralStorage<dist::Cpu>, 3>) {
  const auto made = Maker::make();
  auto& strategy = *made;
  nn::Network<Net> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5f, .momentum = 0.5f}};
  const auto scope = strategy.scope();
  const auto before = net.parameter(scope, "dense_1/bias");
  optimizer.assign_slot(scope, "momentum", "dense_1/bias", std::vector<float>{1, 2, 3, 4, 5});
  optimizer.assign_slot(scope, "momentum", "dense/kernel", 2.0f);
  CHECK(optimizer.slot(scope, "momentum", "dense_1/bias") == dist::Tensor<float>{{5}, {1, 2, 3, 4, 5}});
  CHECK(optimizer.slot(scope, "momentum", "dense/kernel")(39, 16) == 2);
  CHECK(optimizer.slot(scope, "momentum", "dense_1/kernel")[0] == 0);
  // With gradients of zero, a step moves the weights by half of the earlier momentum.
  strategy.run([&](auto& replica) {
    const std::span<float> gradients = net.gradients().component(replica);
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    optimizer.apply_gradients(replica);
  });
  const auto after = net.parameter(scope, "dense_1/bias");
  for (std::size_t i = 0; i < 5; ++i) CHECK(after[i] == before[i] + 0.5f * static_cast<float>(i + 1));
  CHECK(optimizer.slot(scope, "momentum", "dense/kernel")(0, 3) == 1);
  CHECK_THROWS_AS(optimizer.assign_slot(scope, "momentum", "dense_1/bias", std::vector<float>{1}), dist::ShapeMismatch);
}
