// Model on GPUs, compared with histories of the plain loops on the host, for every loss, reduction and regulariser.
// replicas on GPUs: 1 2 3 4
#include <dist/nn/cuda/backend.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/uploaded.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
namespace data = dist::data;

namespace {

using Net = nn::Sequential<nn::Input<4, 2>, nn::Flatten, nn::Dense<6, nn::Relu>, nn::Dense<3>>;
constexpr std::size_t examples = 20, batch = 8, epochs = 3;  // the last batch is smaller

dist::Tensor<float> inputs() {
  dist::Tensor<float> x{{examples, 4, 2}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 19) / 19.0F - 0.5F;
  return x;
}
dist::Tensor<std::int32_t> classes() {
  dist::Tensor<std::int32_t> y{{examples}};
  for (std::size_t i = 0; i < examples; ++i) y[i] = static_cast<std::int32_t>(i * 5 % 3);
  return y;
}
dist::Tensor<float> vectors() {
  dist::Tensor<float> y{{examples, 3}};
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i * 11 % 7) / 7.0F;
  return y;
}

auto batches(const auto& targets) { return data::tensor_slices(inputs(), targets) | data::batch(batch); }

/// Returns the losses and metrics of each epoch and of an evaluation.
template <class Backend, class S, class Layers, class Dataset, class L, class... Ms>
std::vector<double> fit(const Dataset& points, const L& loss, const Ms&... metrics) {
  S strategy{conformance::replicas_of_environment()};
  nn::Network<Layers, Backend> net{strategy, 3};
  nn::Model model{strategy, net, nn::SGD{.learning_rate = 0.1F}, loss, metrics...};
  const nn::History history = model.fit(points, {.epochs = epochs, .verbose = 0});
  const nn::Logs logs = model.evaluate(points, {.verbose = 0});
  std::vector<double> numbers{logs["loss"]};
  for (const auto& entry : logs) numbers.push_back(entry.value);
  for (const auto& series : history.series())
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) numbers.push_back(history[series.name][epoch]);
  return numbers;
}

template <class Layers = Net, class Dataset, class... Parts>
void check_alike(const Dataset& points, const Parts&... parts) {
  using Gpus = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
  using Host = dist::Mirrored<dist::ThreadAllReduce>;
  const std::vector<double> on_gpus = fit<nn::Cuda, Gpus, Layers>(points, parts...);
  const std::vector<double> on_host = fit<nn::Reference, Host, Layers>(points, parts...);
  REQUIRE(on_gpus.size() == on_host.size());
  for (std::size_t i = 0; i < on_host.size(); ++i) CHECK(on_gpus[i] == doctest::Approx(on_host[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("a fit with cross-entropy, accuracy, sample weights and weighted metrics matches the host") {
  dist::Tensor<float> weights{{examples}};
  for (std::size_t i = 0; i < examples; ++i) weights[i] = static_cast<float>(i % 4 + 1) / 2;
  check_alike(data::TensorSlices{std::tuple{inputs(), classes(), weights}} | data::batch(batch),
              nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{},
              nn::Weighted{nn::SparseCategoricalAccuracy{}},
              nn::Weighted{nn::MeanOf{nn::SparseCategoricalCrossentropy{}}});
}

TEST_CASE("a fit with mean squared error as loss and metric matches the host") {
  check_alike(batches(vectors()), nn::MeanSquaredError{}, nn::MeanOf{nn::MeanSquaredError{}});
}

TEST_CASE("a fit with a sum as loss matches the host") {
  check_alike(batches(vectors()), nn::Reduced{nn::MeanSquaredError{}, nn::Reduction::Sum{}},
              nn::MeanOf{nn::MeanSquaredError{}});
}

TEST_CASE("a fit with a regularised loss matches the host") {
  check_alike(batches(classes()), nn::Regularized{nn::SparseCategoricalCrossentropy{}, nn::L1L2{1e-2F, 1e-2F}},
              nn::SparseCategoricalAccuracy{});
}

TEST_CASE("a fit with labels of elements, some of them ignored, matches the host") {
  using OfElements = nn::Sequential<nn::Input<4, 2>, nn::Dense<6, nn::Relu>, nn::Dense<3>>;
  dist::Tensor<std::int32_t> labels{{examples, 4}};
  dist::Tensor<float> weights{{examples, 4}};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(i * 5 % 7 % 4) - 1;
    weights[i] = static_cast<float>(i % 4 + 1) / 2;
  }
  const nn::SparseCategoricalCrossentropy loss{.ignore_class = -1};
  const auto plain = batches(labels);
  const auto weighted = data::TensorSlices{std::tuple{inputs(), labels, weights}} | data::batch(batch);
  const nn::SparseCategoricalAccuracy accuracy{.ignore_class = -1};
  check_alike<OfElements>(plain, loss, accuracy, nn::MeanOf{loss});
  check_alike<OfElements>(weighted, loss, nn::Weighted{accuracy}, nn::Weighted{nn::MeanOf{loss}});
  check_alike<OfElements>(weighted, nn::Reduced{loss, nn::Reduction::Sum{}},
                          nn::ConfusionMatrix{.classes = 3, .ignore_class = -1});
}
