// Exchange of network weights with other programs.
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/npz.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include <support/python.hpp>
#include <support/temporary_folder.hpp>

namespace nn = dist::nn;

namespace {

const testing::NeedsPython needs_safetensors{"safetensors.numpy"};

struct AsPyTorch : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
  static constexpr double epsilon = 1e-5;
};
using Classifier = nn::Sequential<nn::Input<8, 8, 3>, nn::Conv2D<6, 3, nn::Linear, 1, nn::Pad<1>>,
                                  nn::BatchNormalization<nn::PerReplicaStatistics, AsPyTorch>, nn::ReLU,
                                  nn::DepthwiseConv2D<3, nn::Linear, 1, nn::Pad<1>, 2>, nn::MaxPool2D<2>, nn::Flatten,
                                  nn::Dense<5, nn::Relu>, nn::Dense<4>>;
struct NormalizationAsPyTorch : nn::LayerNormalizationOptions {
  static constexpr double epsilon = 1e-5;
};
using Encoder = nn::Sequential<
    nn::Input<5>, nn::Embedding<9, 6>,
    nn::Residual<nn::Sequential<nn::LayerNormalization<NormalizationAsPyTorch>, nn::MultiHeadAttention<2, 3>>>>;

/// Checks that the network predicts y for x, both from an NPZ file.
void check_predictions(dist::Default& strategy, auto& network, const std::string& path) {
  const dist::io::Npz expected{path};
  const auto x = expected.read<double>("x");
  const auto y = expected.read<double>("y");
  strategy.run([&](const auto& replica) {
    const auto found = network.forward(replica, dist::TensorView<const double>{x}, nn::inference).values;
    REQUIRE(found.size() == y.size());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(found[i] == doctest::Approx(y[i]).epsilon(1e-6));
  });
}

}  // namespace

TEST_CASE("NumPy and safetensors read the weights of a network by name") {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<2>, nn::BatchNormalization<>, nn::Dense<1>>> network{strategy};
  auto scope = strategy.scope();
  network.assign_parameter(scope, "dense/kernel", dist::Tensor<float>{{2, 2}, {1, 2, 3, 4}});
  network.assign_parameter(scope, "dense/bias", 0.5F);
  network.assign_parameter(scope, "dense_1/kernel", dist::Tensor<float>{{2, 1}, {-1, 8}});
  const support::TemporaryFolder folder;
  dist::save_weights(strategy, network, folder.path("weights.npz"));
  dist::save_weights(strategy, network, folder.path("weights.safetensors"));
  const std::string expected =
      "batch_normalization/beta float32 [2] [0.0, 0.0]\n"
      "batch_normalization/gamma float32 [2] [1.0, 1.0]\n"
      "batch_normalization/moving_mean float32 [2] [0.0, 0.0]\n"
      "batch_normalization/moving_variance float32 [2] [1.0, 1.0]\n"
      "dense/bias float32 [2] [0.5, 0.5]\n"
      "dense/kernel float32 [2, 2] [1.0, 2.0, 3.0, 4.0]\n"
      "dense_1/bias float32 [1] [0.0]\n"
      "dense_1/kernel float32 [2, 1] [-1.0, 8.0]\n";
  CHECK(testing::python_output("checkpoint/show_weights.py", folder.path()) == expected + expected);
}

TEST_CASE("a network with a PyTorch state_dict predicts the same") {
  const support::TemporaryFolder folder;
  testing::python_output("checkpoint/state_dict.py", folder.path());
  const dist::LoadWeightsOptions options{
      .names = {{"conv2d/kernel", "features.0.weight", {2, 3, 1, 0}},
                {"conv2d/bias", "features.0.bias"},
                {"batch_normalization/gamma", "features.1.weight"},
                {"batch_normalization/beta", "features.1.bias"},
                {"batch_normalization/moving_mean", "features.1.running_mean"},
                {"batch_normalization/moving_variance", "features.1.running_var"},
                {"depthwise_conv2d/kernel", "features.3.weight", {2, 3, 0, 1}, dist::Shape{12, 1, 3, 3}},
                {"depthwise_conv2d/bias", "features.3.bias"},
                {"dense/kernel", "classifier.0.weight", {2, 3, 1, 0}, dist::Shape{5, 12, 4, 4}},
                {"dense/bias", "classifier.0.bias"},
                {"dense_1/kernel", "classifier.2.weight", {1, 0}},
                {"dense_1/bias", "classifier.2.bias"}},
      .ignore_superfluous = true};
  dist::Default strategy;
  for (const std::string name : {"state_dict.safetensors", "state_dict.npz"}) {
    CAPTURE(name);
    nn::Network<Classifier, nn::Reference, double> network{strategy};
    CHECK(dist::load_weights(strategy, network, folder.path(name), options) ==
          std::vector<std::string>{"features.1.num_batches_tracked"});
    check_predictions(strategy, network, folder.path("expected.npz"));
  }
}

TEST_CASE("a PyTorch encoder, whose attention has one weight for three projections, predicts the same") {
  const support::TemporaryFolder folder;
  testing::python_output("checkpoint/state_dict.py", folder.path());
  constexpr std::size_t width = 6;
  const auto kernel = [](const char* ours, std::size_t part) {
    return dist::WeightSource{ours,
                              "attention.in_proj_weight",
                              {1, 0},
                              dist::Shape{width, width},
                              dist::IndexRange{part * width, (part + 1) * width}};
  };
  const auto bias = [](const char* ours, std::size_t part) {
    return dist::WeightSource{
        ours, "attention.in_proj_bias", {}, dist::Shape{width}, dist::IndexRange{part * width, (part + 1) * width}};
  };
  dist::Default strategy;
  nn::Network<Encoder, nn::Reference, double> network{strategy};
  dist::load_weights(strategy, network, folder.path("encoder.safetensors"),
                     {.names = {{"embedding/embeddings", "embedding.weight"},
                                {"layer_normalization/gamma", "norm.weight"},
                                {"layer_normalization/beta", "norm.bias"},
                                kernel("multi_head_attention/query/kernel", 0),
                                bias("multi_head_attention/query/bias", 0),
                                kernel("multi_head_attention/key/kernel", 1),
                                bias("multi_head_attention/key/bias", 1),
                                kernel("multi_head_attention/value/kernel", 2),
                                bias("multi_head_attention/value/bias", 2),
                                {"multi_head_attention/attention_output/kernel",
                                 "attention.out_proj.weight",
                                 {1, 0},
                                 dist::Shape{width, width}},
                                {"multi_head_attention/attention_output/bias", "attention.out_proj.bias"}}});
  check_predictions(strategy, network, folder.path("encoded.npz"));
}
