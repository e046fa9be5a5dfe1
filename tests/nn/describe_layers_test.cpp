#include <dist/nn/describe_layers.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

namespace {

using Block = nn::Residual<nn::Sequential<nn::Conv2D<4, 1, nn::Relu>, nn::BatchNormalization<>>>;
using Net = nn::Sequential<nn::Input<6, 6, 1>, nn::Conv2D<4, 3, nn::Relu>, Block, nn::Named<"block", Block>,
                           nn::Flatten, nn::Named<"head", nn::Dense<3>>>;

}  // namespace

TEST_CASE("describe_layers lists names, as in parameters, and inputs of layers") {
  const std::vector<nn::LayerDescription> layers = nn::describe_layers<Net>();
  std::string names;
  for (const auto& layer : layers) names += layer.name + " ";
  CHECK(names == "conv2d conv2d_1 batch_normalization add block/conv2d block/batch_normalization block flatten head ");
  REQUIRE(layers.size() == 9);
  CHECK(layers[0].inputs.empty());
  CHECK(layers[0].parameters == 3 * 3 * 4 + 4);
  CHECK(layers[0].output == std::vector<std::size_t>{4, 4, 4});
  CHECK(layers[1].inputs == std::vector<std::string>{"conv2d"});
  CHECK((layers[2].parameters == 8 && layers[2].kept == 8));
  CHECK(layers[3].inputs == std::vector<std::string>{"batch_normalization", "conv2d"});
  CHECK(layers[6].inputs == std::vector<std::string>{"block/batch_normalization", "add"});
  CHECK(layers[5].kind == "batch_normalization");
  CHECK(layers[8].inputs == std::vector<std::string>{"flatten"});
  // Parameters have these names as prefixes.
  for (const auto& parameter : Net::parameters) {
    const std::string name = parameter.name().substr(0, parameter.name().find_last_of('/'));
    CHECK_MESSAGE(std::any_of(layers.begin(), layers.end(), [&](const auto& layer) { return layer.name == name; }),
                  name);
  }
}

TEST_CASE("summary returns a table") {
  using Small = nn::Sequential<nn::Input<4>, nn::Dense<8, nn::Relu>, nn::BatchNormalization<>, nn::Dense<3>>;
  CHECK(nn::summary(nn::describe_layers<Small>()) ==
        "Layer                Output shape  Parameters\n"
        "---------------------------------------------\n"
        "dense                (rows, 8)             40\n"
        "batch_normalization  (rows, 8)             32\n"
        "dense_1              (rows, 3)             27\n"
        "Parameters: 99 (trainable: 83)\n");
}

TEST_CASE("a Repeat is one row with the number of its blocks") {
  using Repeated = nn::Sequential<nn::Input<4>, nn::Repeat<3, nn::Sequential<nn::Dense<4>, nn::BatchNormalization<>>>,
                                  nn::Named<"blocks", nn::Repeat<12, nn::Dense<4>>>>;
  const auto layers = nn::describe_layers<Repeated>();
  REQUIRE(layers.size() == 2);
  CHECK(layers[1].blocks == 12);
  CHECK(nn::summary(layers) ==
        "Layer        Output shape  Parameters\n"
        "-------------------------------------\n"
        "repeat x 3   (rows, 4)            108\n"
        "blocks x 12  (rows, 4)            240\n"
        "Parameters: 348 (trainable: 324)\n");
}
