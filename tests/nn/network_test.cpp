#include <dist/nn/network.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

using Net = nn::Sequential<nn::Input<4, 4, 1>, nn::Conv2D<2, 3, nn::Relu>, nn::Flatten, nn::Dense<3>>;

dist::Tensor<float> images(std::size_t rows, dist::Shape row) {
  dist::Tensor<float> x{row.stacked(rows)};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) / 11;
  return x;
}

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const dist::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a network has the sizes of its type") {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  CHECK(net.parameter_count == 3 * 3 * 2 + 2 + 8 * 3 + 3);
  CHECK(net.parameters().size() == net.padded_count);
  CHECK(net.gradients().size() == net.padded_count);
  CHECK(net.layout().size() == 4);
  CHECK(net.layout()[3].name() == "dense/bias");
}

TEST_CASE("every replica starts with the same parameters, which depend on the seed (spec G06)") {
  Mirrored strategy{3};
  nn::Network<Net> net{strategy, 5};
  dist::Default alone;
  nn::Network<Net> same{alone, 5};
  nn::Network<Net> other{alone, 6};
  const auto values = [](auto& network, auto& on, std::size_t replica) {
    const auto span = network.parameters().component(on.scope(), replica);
    return std::vector<float>(span.begin(), span.end());
  };
  for (std::size_t replica = 0; replica < 3; ++replica) CHECK(values(net, strategy, replica) == values(same, alone, 0));
  CHECK(values(other, alone, 0) != values(same, alone, 0));
}

TEST_CASE("forward computes the layers on a replica") {
  dist::Default strategy;
  using Line = nn::Sequential<nn::Input<2>, nn::Dense<1>>;
  nn::Network<Line> net{strategy};
  strategy.run([&](auto& replica) {
    const auto kernel = net.parameter<0, 0>(replica);
    kernel[0] = 3;
    kernel[1] = 5;
    net.parameter<0, 1>(replica)[0] = 7;
    dist::Tensor<float> x{dist::Shape{2, 2}};
    x[0] = 1, x[1] = 2, x[2] = -1, x[3] = 0;
    const auto y = net.forward(replica, x);
    CHECK(y.values.shape() == dist::Shape{2, 1});
    CHECK(y.values[0] == 3 + 10 + 7);
    CHECK(y.values[1] == -3 + 7);
    y.gradient[0] = 1;
    y.gradient[1] = 10;
    net.backward(replica, 0);
    CHECK(net.gradient<0, 0>(replica)[0] == 1 * 1 - 1 * 10);
    CHECK(net.gradient<0, 0>(replica)[1] == 2 * 1);
    CHECK(net.gradient<0, 1>(replica)[0] == 11);
  });
}

TEST_CASE("each replica has its own outputs and gradients, with respect to its own copy (spec G30)") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  const auto gradients = strategy.run([&](auto& replica) {
    const auto x = images(replica.local_index() == 0 ? 2 : 0, dist::Shape{4, 4, 1});  // the second has no rows
    const auto y = net.forward(replica, x);
    for (float& element : y.gradient.elements()) element = 1;
    net.backward(replica, 0);
    return net.gradient<2, 1>(replica)[0];
  });
  CHECK(gradients[0] == 2);
  CHECK(gradients[1] == 0);
}

TEST_CASE("the batch of a worker that never had a row may have no extents (spec I24)") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  const auto bias_gradients = strategy.run([&](auto& replica) {
    const bool is_empty = replica.local_index() == 1;
    const dist::Tensor<float> x = is_empty ? dist::Tensor<float>{} : images(2, dist::Shape{4, 4, 1});
    const dist::Tensor<int> y{dist::Shape{x.rows()}};
    CHECK(x.shape() == (is_empty ? dist::Shape{0} : dist::Shape{2, 4, 4, 1}));
    const auto outputs = net.forward(replica, x);
    CHECK(outputs.values.shape() == dist::Shape{x.rows(), 3});
    const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, y, 2);
    net.backward(replica, loss);
    if (is_empty) CHECK(loss.value() == 0);
    return net.gradient<2, 1>(replica)[0];
  });
  CHECK(bias_gradients[0] != 0);
  CHECK(bias_gradients[1] == 0);
}

TEST_CASE("trailing axes of extent 1 are optional") {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  strategy.run([&](auto& replica) {
    const auto with = images(2, dist::Shape{4, 4, 1});
    const auto without = images(2, dist::Shape{4, 4});
    const float expected = net.forward(replica, with).values[5];
    CHECK(net.forward(replica, without).values[5] == expected);
  });
}

TEST_CASE("a batch with another row shape is rejected, and the message has both shapes") {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  for (const dist::Shape& shape : {dist::Shape{2, 16}, dist::Shape{2, 4, 5}, dist::Shape{4, 4, 4}, dist::Shape{}}) {
    const bool fits = shape == dist::Shape{4, 4, 4};
    const dist::Tensor<float> x{shape};
    const auto call = [&] { strategy.run([&](auto& replica) { return net.forward(replica, x).values.size(); }); };
    if (fits) {
      CHECK_NOTHROW(call());
    } else {
      CHECK_THROWS_AS(call(), dist::ShapeMismatch);
      CHECK(message_of(call).find(to_string(shape)) != std::string::npos);
      CHECK(message_of(call).find("[4, 4, 1]") != std::string::npos);
    }
  }
}

TEST_CASE("backward requires a forward") {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  const auto call = [&] { strategy.run([&](auto& replica) { net.backward(replica, 0); }); };
  CHECK_THROWS_AS(call(), dist::InvalidArgument);
  CHECK(message_of(call).find("replica 0") != std::string::npos);
}

namespace {

using First = nn::Sequential<nn::Input<3>, nn::Dense<4, nn::Tanh>, nn::Dense<2, nn::Tanh>>;
using Second = nn::Sequential<nn::Input<2>, nn::Dense<5, nn::Relu>, nn::Dense<3>>;
using Whole =
    nn::Sequential<nn::Input<3>, nn::Dense<4, nn::Tanh>, nn::Dense<2, nn::Tanh>, nn::Dense<5, nn::Relu>, nn::Dense<3>>;

std::vector<double> numbers_of(const auto& view) { return {view.data(), view.data() + view.size()}; }
std::vector<double> all(const dist::ReplicaBuffer<double>& gradients, const auto& replica) {
  return numbers_of(gradients.component(replica));
}

}  // namespace

TEST_CASE("a network continues backward from the input gradient of the network after it") {
  dist::Default strategy;
  nn::Network<First, nn::Reference, double> first{strategy, 1};
  nn::Network<Second, nn::Reference, double> second{strategy, 2};
  nn::Network<Whole, nn::Reference, double> whole{strategy, 3};
  const auto scope = strategy.scope();
  const std::size_t of_first = first.layout().size();
  for (std::size_t i = 0; i < whole.layout().size(); ++i) {
    const bool is_first = i < of_first;
    const std::string name = is_first ? first.layout()[i].name() : second.layout()[i - of_first].name();
    whole.assign_parameter(scope, whole.layout()[i].name(),
                           is_first ? first.parameter(scope, name) : second.parameter(scope, name));
  }
  strategy.run([&](auto& replica) {
    for (const std::size_t rows : {4U, 2U, 0U, 3U}) {
      CAPTURE(rows);
      dist::Tensor<double> x{dist::Shape{rows, 3}};
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5) / 5 - 0.3;
      const dist::Tensor<int> labels{dist::Shape{rows}};
      const auto loss_of = [&](const auto& y) { return nn::sparse_categorical_crossentropy(replica, y, labels, 4); };
      const auto expected = whole.backward(replica, loss_of(whole.forward(replica, x)), nn::input_gradient);

      const auto forward = [&] { return loss_of(second.forward(replica, first.forward(replica, x).values)); };
      const auto slopes = second.backward(replica, forward(), nn::input_gradient);
      CHECK(slopes.shape() == dist::Shape{rows, 2});
      const auto dx = first.backward(replica, slopes, nn::input_gradient);
      CHECK(dx.shape() == dist::Shape{rows, 3});
      CHECK(numbers_of(dx) == numbers_of(expected));
      CHECK(numbers_of(first.gradient<0, 0>(replica)) == numbers_of(whole.gradient<0, 0>(replica)));
      CHECK(numbers_of(first.gradient<1, 1>(replica)) == numbers_of(whole.gradient<1, 1>(replica)));
      CHECK(numbers_of(second.gradient<0, 0>(replica)) == numbers_of(whole.gradient<2, 0>(replica)));

      // Without the gradients of the second network's parameters.
      const auto of_second = all(std::as_const(second).gradients(), replica);
      second.gradient<0, 0>(replica)[0] = 77;
      const auto again = second.backward(replica, forward(), nn::only_input_gradient);
      CHECK(second.gradient<0, 0>(replica)[0] == 77);
      CHECK(numbers_of(second.gradient<1, 0>(replica)) ==
            std::vector<double>(of_second.begin() + static_cast<std::ptrdiff_t>(second.layout()[2].offset),
                                of_second.begin() + static_cast<std::ptrdiff_t>(second.layout()[2].offset) + 15));
      CHECK(numbers_of(first.backward(replica, again, nn::only_input_gradient)) == numbers_of(expected));
    }
  });
}

TEST_CASE("an input gradient alone leaves it open whether an optimizer may take gradients") {
  dist::Default strategy;
  nn::Network<Second> net{strategy};
  const dist::Tensor<float> x{dist::Shape{2, 2}}, slopes{dist::Shape{2, 3}};
  const auto take = [&] { strategy.run([&](auto& replica) { (void)net.take_gradients(replica); }); };
  const auto backward = [&](auto... sources) {
    strategy.run([&](auto& replica) {
      static_cast<void>(net.forward(replica, x));
      static_cast<void>(net.backward(replica, slopes, sources...));
    });
  };
  backward(nn::only_input_gradient);
  CHECK(message_of(take).find("has not called backward yet") != std::string::npos);
  backward(nn::input_gradient);
  backward(nn::only_input_gradient);
  take();
  backward(nn::only_input_gradient);
  CHECK(message_of(take).find("has already applied the gradients of its last backward") != std::string::npos);
}

TEST_CASE("owners compute gradients after a backward with an input gradient, but not after an input gradient alone") {
  using Storage = nn::OwnerComputedGradients<1>;
  using Wide = nn::Sequential<nn::Input<8>, nn::Dense<8, nn::Relu>, nn::Dense<2>>;
  Mirrored strategy{2};
  nn::Network<Wide, nn::Reference, float, Storage> owners{strategy};
  nn::Network<Wide> stored{strategy};
  static_assert(!decltype(owners)::stores_gradients);
  dist::Tensor<float> x{dist::Shape{1, 8}}, slopes{dist::Shape{1, 2}, {0.5F, -2}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 3) - 1;
  const auto step = [&](auto& replica, auto& net, auto sources) {
    static_cast<void>(net.forward(replica, x));
    const auto dx = numbers_of(net.backward(replica, slopes, sources));
    net.reduce_and_apply(replica, [](std::size_t, float value, float gradient) { return value - gradient; });
    return dx;
  };
  strategy.run([&](auto& replica) {
    for (int time = 0; time < 2; ++time)
      CHECK(step(replica, owners, nn::input_gradient) == step(replica, stored, nn::input_gradient));
    CHECK_THROWS_AS(static_cast<void>(step(replica, owners, nn::only_input_gradient)), dist::InvalidArgument);
  });
  CHECK(owners.parameter<0, 0>(strategy.scope()) == stored.parameter<0, 0>(strategy.scope()));
}

TEST_CASE("a gradient of another shape is rejected, except for trailing axes of extent 1 and empty batches") {
  dist::Default strategy;
  using Line = nn::Sequential<nn::Input<2>, nn::Dense<1>>;
  nn::Network<Line> net{strategy};
  const auto backward = [&](std::size_t rows, const dist::Shape& shape) {
    strategy.run([&](auto& replica) {
      static_cast<void>(net.forward(replica, dist::Tensor<float>{dist::Shape{rows, 2}}));
      net.backward(replica, dist::Tensor<float>{shape});
    });
  };
  CHECK_NOTHROW(backward(2, {2, 1}));
  CHECK_NOTHROW(backward(2, {2}));
  CHECK_NOTHROW(backward(0, {0}));
  CHECK_NOTHROW(backward(0, {0, 1}));
  for (const dist::Shape& shape : {dist::Shape{2, 2}, dist::Shape{3, 1}, dist::Shape{1}, dist::Shape{0}}) {
    CAPTURE(to_string(shape));
    CHECK_THROWS_AS(backward(2, shape), dist::ShapeMismatch);
  }
  CHECK(message_of([&] {
          backward(2, {3, 1});
        }) ==
        "A gradient does not fit the network's outputs (the gradient has shape [3, 1], the outputs of the last forward "
        "[2, 1]). Give backward the gradient of these outputs, with all rows of the batch.");
  CHECK_THROWS_AS(backward(0, {2, 1}), dist::ShapeMismatch);
}

TEST_CASE("a network computes in double") {
  dist::Default strategy;
  nn::Network<Net, nn::Reference, double> net{strategy};
  const dist::Tensor<double> x{dist::Shape{1, 4, 4, 1}};
  strategy.run([&](auto& replica) { CHECK(net.forward(replica, x).values.size() == 3); });
}

TEST_CASE("a network rejects replicas of a strategy with more replicas") {
  using Small = dist::nn::Sequential<dist::nn::Input<2>, dist::nn::Dense<1>>;
  dist::Mirrored<dist::ThreadAllReduce> one{1}, four{4};
  dist::nn::Network<Small> net{one};
  const dist::Tensor<float> x{dist::Shape{1, 2}};
  const auto refused = four.run([&](auto& replica) {
    try {
      static_cast<void>(net.forward(replica, x));
    } catch (const dist::WrongStrategy&) {
      return true;
    }
    return false;
  });
  for (const bool each : four.local_results(refused)) CHECK(each);
}

TEST_CASE("training is the default mode, and most layers compute the same in both modes") {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  strategy.run([&](auto& replica) {
    const auto x = images(2, dist::Shape{4, 4, 1});
    const auto copy = [](const auto& y) { return std::vector<float>(y.values.data(), y.values.data() + 6); };
    const auto trained = copy(net.forward(replica, x));
    CHECK(copy(net.forward(replica, x, nn::training)) == trained);
    CHECK(copy(net.forward(replica, x, nn::inference)) == trained);
  });
}

TEST_CASE("state is in a separate variable, with names and layout like parameters") {
  using Normalised = nn::Sequential<nn::Input<2>, nn::BatchNormalization<>, nn::Dense<3>, nn::BatchNormalization<>>;
  Mirrored strategy{2};
  nn::Network<Normalised> net{strategy};
  CHECK(net.layout().size() == 6);
  REQUIRE(net.state_layout().size() == 4);
  CHECK(net.state_layout()[2].name() == "batch_normalization_1/moving_mean");
  CHECK(net.state_layout()[2].shape == dist::Shape{3});
  CHECK(net.state().size() == 4 * 16);
  strategy.run([&](auto& replica) {
    net.state().assign(replica, 5);
    CHECK(net.state<2, 1>(replica).shape() == dist::Shape{3});
    CHECK(net.state<2, 1>(replica)[1] == 5);
  });
}

TEST_CASE("networks without state use no memory for it") {
  CHECK(nn::Network<Net>::state_layout().empty());
  CHECK(std::is_empty_v<nn::Network<Net>::State>);
}

TEST_CASE("backward reports final gradients from the last layer to the first, while it computes others") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  using Small =
      nn::Sequential<nn::Input<4, 4, 1>, nn::Conv2D<2, 3, nn::Relu>, nn::Flatten, nn::Dense<5, nn::Relu>, nn::Dense<3>>;
  nn::Network<Small> net{strategy};
  strategy.run([&](auto& replica) {
    // The second replica has no rows: its gradients are zero, and final at once.
    const auto x = images(replica.replica_id().index() == 0 ? 6 : 0, {4, 4, 1});
    auto y = net.forward(replica, x);
    for (std::size_t i = 0; i < y.gradient.size(); ++i) y.gradient[i] = static_cast<float>(i % 5) - 2;
    const std::span<float> gradients = net.gradients().component(replica);
    std::fill(gradients.begin(), gradients.end(), -77.0f);
    std::size_t end = net.padded_count, calls = 0, untouched = 0;
    std::vector<float> seen(gradients.size());
    net.backward(replica, y, [&](dist::IndexRange elements) {
      CHECK(elements.end == end);
      end = elements.begin;
      ++calls;
      std::copy(gradients.begin() + static_cast<std::ptrdiff_t>(elements.begin),
                gradients.begin() + static_cast<std::ptrdiff_t>(elements.end),
                seen.begin() + static_cast<std::ptrdiff_t>(elements.begin));
      for (std::size_t i = 0; i < elements.begin; ++i) untouched += gradients[i] == -77.0f;
    });
    CHECK(end == 0);
    CHECK(std::equal(gradients.begin(), gradients.end(), seen.begin()));
    if (replica.replica_id().index() == 0) {
      CHECK(calls == 3);
      CHECK(untouched == net.layout()[4].offset + net.layout()[2].offset);
    } else {
      CHECK(calls >= 1);
      CHECK(std::count(seen.begin(), seen.end(), 0.0f) == static_cast<std::ptrdiff_t>(seen.size()));
    }
  });
}

TEST_CASE("forward reports the parameters that it needs next, from the first layer to the last, and then reads them") {
  dist::Default strategy;
  nn::Network<Net> net{strategy, 3};
  const auto x = images(2, {4, 4, 1});
  strategy.run([&](auto& replica) {
    const auto values = [](const auto& outputs) {
      const auto elements = nn::values_of(outputs).elements();
      return std::vector<float>(elements.begin(), elements.end());
    };
    const std::vector<float> expected = values(net.forward(replica, x));
    const std::span<float> parameters = net.parameters().component(replica);
    const std::vector<float> kept(parameters.begin(), parameters.end());
    std::fill(parameters.begin(), parameters.end(), std::numeric_limits<float>::quiet_NaN());
    std::size_t begin = 0, calls = 0;
    nn::Workspace<Net, nn::Reference, float, nn::StoredGradients> workspace{replica.queue()};
    const auto outputs = workspace.forward(parameters, x, nn::NoReplica{}, [&](dist::IndexRange elements) {
      CHECK(elements.begin == begin);
      begin = elements.end;
      ++calls;
      for (std::size_t i = elements.begin; i < elements.end; ++i) parameters[i] = kept[i];
    });
    CHECK(begin == net.padded_count);
    CHECK(calls == 2);
    CHECK(values(outputs) == expected);
  });
}

TEST_CASE_TEMPLATE("parameters are read and assigned outside replica functions, by number and by name", S,
                   dist::Default, Mirrored, dist::CentralStorage<dist::Cpu>) {
  S strategy;
  nn::Network<Net> net{strategy};
  const auto scope = strategy.scope();
  const auto before = net.template parameter<2, 0>(scope);
  CHECK(before.shape() == dist::Shape{8, 3});
  CHECK(before == net.parameter(scope, "dense/kernel"));
  net.assign_parameter(scope, "dense/bias", std::vector<float>{1, 2, 3});
  net.assign_parameter(scope, "conv2d/kernel", 0.25f);
  CHECK(net.template parameter<2, 1>(scope) == dist::Tensor<float>{{3}, {1, 2, 3}});
  CHECK(net.parameter(scope, "dense/kernel") == before);
  const auto seen = strategy.run([&](auto& replica) {
    const auto bias = net.template parameter<2, 1>(replica);
    return bias[2] + net.template parameter<0, 0>(replica)[17];
  });
  for (const float sum : strategy.local_results(seen)) CHECK(sum == 3.25f);
  CHECK(message_of([&] { static_cast<void>(net.parameter(scope, "dense/gamma")); }) ==
        "The network has no parameter 'dense/gamma' (it has conv2d/kernel, conv2d/bias, dense/kernel, dense/bias). Use "
        "one of these names.");
  CHECK(message_of([&] {
          net.assign_parameter(scope, "dense/bias", std::vector<float>{1});
        }).find("A value does not fit variable 'dense/bias'") == 0);
}

TEST_CASE("parameters and state are tracked by name, with any number of replicas") {
  using Normalized = nn::Sequential<nn::Input<4>, nn::Dense<3>, nn::BatchNormalization<>, nn::Dense<2>>;
  Mirrored three{3};
  nn::Network<Normalized> net{three, 5};
  three.run([&](auto& replica) {
    dist::Tensor<float> x{{2, 4}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 7 * replica.local_index());
    static_cast<void>(net.forward(replica, x));
  });
  const support::Saved saved{three, net};
  CHECK(saved.keys() == std::vector<std::string>{"batch_normalization/beta", "batch_normalization/gamma",
                                                 "batch_normalization/moving_mean",
                                                 "batch_normalization/moving_variance", "dense/bias", "dense/kernel",
                                                 "dense_1/bias", "dense_1/kernel"});
  CHECK(saved.get<float>("dense_1/kernel") == net.parameter(three.scope(), "dense_1/kernel"));
  const auto check = [&](auto strategy) {
    CAPTURE(strategy->describe());
    nn::Network<Normalized> restored{*strategy, 6};
    CHECK(support::Saved{*strategy, restored} != saved);
    saved.restore(*strategy, restored);
    CHECK(support::Saved{*strategy, restored} == saved);
    strategy->run([&](auto& replica) {
      if (restored.template parameter<2, 0>(replica)[3] != saved.get<float>("dense_1/kernel")[3])
        throw dist::InvalidArgument("a copy was not restored", "", "");
    });
  };
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    check(std::make_unique<Mirrored>(replicas));
    check(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas));
  }
  check(std::make_unique<dist::Default>());
}
