#include <dist/nn/layers/unembed.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

constexpr std::size_t words = 7, width = 3, length = 4;
using Wte = nn::Named<"wte", nn::Embedding<words, width>>;
using Net = nn::Sequential<nn::Input<length>, Wte, nn::LearnedPositions<>, nn::Residual<nn::Dense<width, nn::Tanh>>,
                           nn::Unembed<"wte">>;
/// A network that uses its table a third time.
using Twice = nn::Sequential<nn::Input<length>, nn::Named<"wte", nn::Embedding<words, width>>, nn::Unembed<"wte">,
                             nn::Dense<width, nn::Tanh>, nn::Unembed<"wte">>;

/// Returns ids, some of them several times.
List ids(std::size_t count) {
  List all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<double>((i * 5 + i * i) % (words - 1));
  return all;
}

/// Compares gradients in double with central differences.
template <class Model>
void check_gradients(std::size_t rows) {
  dist_test::Bench<nn::Reference> bench;
  nn::Workspace<Model, nn::Reference, double> workspace{bench.queue()};
  List parameters = dist_test::numbers(Model::padded_count, 1);
  const auto analytic = dist_test::pass(bench, workspace, parameters, ids(rows * length));
  std::size_t index = 0;
  for (const nn::Parameter& parameter : Model::parameters)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i, ++index) {
      double& changed = parameters[parameter.offset + i];
      const auto loss_at = [&, before = changed](double step) {
        changed = before + step;
        const double loss = dist_test::pass(bench, workspace, parameters, ids(rows * length)).loss;
        changed = before;
        return loss;
      };
      const double numeric = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      CAPTURE(parameter.name());
      CAPTURE(i);
      CHECK(std::abs(analytic.gradients[index] - numeric) <= 1e-6 * std::fmax(1.0, std::abs(numeric)));
    }
  CHECK(index == Model::parameter_count);
}

/// Trains a network for some steps and returns its parameters.
template <class Model, class Storage = nn::StoredGradients>
std::vector<float> trained(auto& strategy) {
  constexpr std::size_t batch = 6;
  dist::Tensor<float> x{dist::Shape{batch, length}};
  dist::Tensor<std::int32_t> labels{dist::Shape{batch, length}};
  const List all = ids(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(all[i]);
    labels[i] = static_cast<std::int32_t>((i * 3) % words);
  }
  nn::Network<Model, nn::Reference, float, Storage> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.05F}};
  const std::size_t rows = batch / strategy.num_replicas_in_sync();
  for (int step = 0; step < 5; ++step)
    strategy.run([&](auto& replica) {
      const std::size_t first = replica.replica_id().index() * rows;
      const auto logits = net.forward(replica, dist::TensorView<const float>{x}.rows(first, rows));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, logits, dist::TensorView<const std::int32_t>{labels}.rows(first, rows), batch * length);
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
    });
  std::vector<float> parameters;
  for (const nn::Parameter& parameter : Model::parameters) {
    const auto part = net.parameter(strategy.scope(), parameter.name());
    parameters.insert(parameters.end(), part.elements().begin(), part.elements().end());
  }
  return parameters;
}

void check_close(const std::vector<float>& computed, const std::vector<float>& expected) {
  REQUIRE(computed.size() == expected.size());
  for (std::size_t i = 0; i < computed.size(); ++i) CHECK(computed[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("Unembed multiplies by the transposed table, which is one parameter") {
  CHECK(std::is_same_v<Net::OutputShape, dist::StaticShape<length, words>>);
  REQUIRE(Net::parameters.size() == 4);
  CHECK(Net::parameters[0].name() == "wte/embeddings");
  CHECK(Net::parameter_count == words * width + length * width + width * width + width);

  using Small = nn::Sequential<nn::Input<1>, nn::Named<"t", nn::Embedding<2, 2>>, nn::Unembed<"t">>;
  nn::Workspace<Small, nn::Reference, double> workspace;
  const List table{1, 2, 3, 4};
  const List ids{1};
  const dist::TensorView<const double> x{ids.data(), {1, 1}};
  const auto y = workspace.forward(table, x);
  CHECK(List(y.values.data(), y.values.data() + 2) == List{3 + 2 * 4, 9 + 16});  // row 1 times each row
  y.gradient[0] = 10;
  y.gradient[1] = 100;
  List gradients(Small::padded_count, -99);
  workspace.backward(table, std::span<double>{gradients});
  // The outer product of dy and row 1, and dy times the table for row 1.
  CHECK(List(gradients.begin(), gradients.begin() + 4) == List{30, 40, 300 + 10 + 300, 400 + 20 + 400});
}

TEST_CASE("gradients of a tied table agree with central differences") {
  check_gradients<Net>(3);
  check_gradients<Twice>(2);
}

TEST_CASE("a tied table gets the sum of the gradients of two separate tables") {
  using Apart = nn::Sequential<nn::Input<length>, nn::Named<"wte", nn::Embedding<words, width>>, nn::LearnedPositions<>,
                               nn::Residual<nn::Dense<width, nn::Tanh>>,
                               nn::Dense<words, nn::Linear, nn::GlorotUniform, nn::NoBias>>;
  const List tied = dist_test::numbers(Net::padded_count, 1);
  List apart(Apart::padded_count);
  std::copy(tied.begin(), tied.end(), apart.begin());
  const std::size_t kernel = Apart::parameters[4].offset;
  for (std::size_t word = 0; word < words; ++word)
    for (std::size_t i = 0; i < width; ++i) apart[kernel + i * words + word] = tied[word * width + i];
  dist_test::Bench<nn::Reference> bench;
  nn::Workspace<Net, nn::Reference, double> workspace;
  nn::Workspace<Apart, nn::Reference, double> of_two;
  const auto computed = dist_test::pass(bench, workspace, tied, ids(3 * length));
  const auto expected = dist_test::pass(bench, of_two, apart, ids(3 * length));
  CHECK(dist_test::difference(computed.outputs, expected.outputs) < 1e-14);
  List gradients(expected.gradients.begin(), expected.gradients.begin() + Net::parameter_count);
  for (std::size_t word = 0; word < words; ++word)
    for (std::size_t i = 0; i < width; ++i)
      gradients[word * width + i] += expected.gradients[Net::parameter_count + i * words + word];
  CHECK(dist_test::difference(computed.gradients, gradients) < 1e-13);
}

TEST_CASE("oneDNN computes tied tables like the plain loops, also for an empty batch") {
  dist_test::Bench<nn::OneDnn> bench;
  dist_test::Bench<nn::Reference> reference_bench;
  nn::Workspace<Net, nn::OneDnn, float> workspace{bench.queue()};
  nn::Workspace<Net, nn::Reference, double> reference;
  const auto floats = dist_test::converted<float>(dist_test::numbers(Net::padded_count, 1));
  const List parameters(floats.begin(), floats.end());
  for (const std::size_t rows : {3U, 1U, 0U}) {
    const auto computed = dist_test::pass(bench, workspace, parameters, ids(rows * length));
    const auto expected = dist_test::pass(reference_bench, reference, parameters, ids(rows * length));
    CHECK(dist_test::difference(computed.outputs, expected.outputs) < 1e-5);
    CHECK(dist_test::difference(computed.gradients, expected.gradients) < 1e-5);
  }
}

TEST_CASE("the gradient of a tied table is ready after the last layer that adds to it") {
  nn::Workspace<Net, nn::Reference, double> workspace;
  const List parameters = dist_test::numbers(Net::padded_count, 1);
  const List batch = ids(2 * length);
  const dist::TensorView<const double> x{batch.data(), {2, length}};
  const auto y = workspace.forward(parameters, x);
  std::fill_n(y.gradient.data(), y.gradient.size(), 1.0);
  List gradients(Net::padded_count, -99);
  std::vector<std::pair<dist::IndexRange, List>> ready;
  workspace.backward(parameters, std::span<double>{gradients}, nn::NoReplica{}, [&](dist::IndexRange elements) {
    ready.emplace_back(elements, List(gradients.begin() + static_cast<std::ptrdiff_t>(elements.begin),
                                      gradients.begin() + static_cast<std::ptrdiff_t>(elements.end)));
  });
  std::size_t end = Net::padded_count;
  for (const auto& [elements, values] : ready) {
    CHECK(elements.end == end);
    end = elements.begin;
    CHECK(std::equal(values.begin(), values.end(), gradients.begin() + static_cast<std::ptrdiff_t>(elements.begin)));
  }
  CHECK(end == 0);
  CHECK(ready.back().first == dist::IndexRange{0, Net::parameters[1].offset});
}

TEST_CASE("only the input's gradient leaves the gradient of a tied table as it is") {
  using Floats = nn::Sequential<nn::Input<length>, Wte, nn::Unembed<"wte">>;
  nn::Workspace<Floats, nn::Reference, double> workspace;
  const List parameters = dist_test::numbers(Floats::padded_count, 1);
  const List batch = ids(length);
  const auto y = workspace.forward(parameters, dist::TensorView<const double>{batch.data(), {1, length}});
  std::fill_n(y.gradient.data(), y.gradient.size(), 1.0);
  List gradients(Floats::padded_count, -99);
  workspace.backward<nn::GradientSources<false, true>>(parameters, std::span<double>{gradients});
  CHECK(gradients == List(Floats::padded_count, -99));
}

TEST_CASE("replicas train a tied table like one") {
  dist::Default one;
  const auto expected = trained<Net>(one);
  for (const std::size_t replicas : {1U, 2U, 3U}) {
    CAPTURE(replicas);
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    check_close(trained<Net>(strategy), expected);
  }
}

TEST_CASE("a tied table trains in a network with gradients that are not stored") {
  using Wide = nn::Sequential<nn::Input<length>, nn::Named<"wte", nn::Embedding<words, 12>>, nn::Dense<12, nn::Tanh>,
                              nn::Unembed<"wte">>;
  static_assert(!nn::OwnerComputedGradients<1>::stores<Wide::Layer<1>>);
  static_assert(nn::OwnerComputedGradients<1>::stores<Wide::Layer<2>>);
  dist::Default one;
  dist::Mirrored<dist::ThreadAllReduce> two{2};
  check_close(trained<Wide, nn::OwnerComputedGradients<1>>(two), trained<Wide>(one));
}
