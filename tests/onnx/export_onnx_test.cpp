#include <dist/onnx/export_onnx.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include <summary/wire.hpp>
#include <support/temporary_folder.hpp>

namespace nn = dist::nn;
using dist_test::Wire;
using Net = nn::Sequential<nn::Input<3>, nn::Dense<2, nn::Relu>, nn::BatchNormalization<>>;

namespace {

/// A layer without an operator.
struct Unknown {
  template <class In>
  struct On : nn::Activate<nn::Relu>::On<In> {
    using Layer = Unknown;
    static constexpr std::string_view name = "unknown";
  };
};

}  // namespace

TEST_CASE("the model has the network's parameters and state, equal under all strategies") {
  const support::TemporaryFolder folder;
  dist::Default one;
  nn::Network<Net> network{one, 3};
  nn::export_onnx(one, network, folder.path("one.onnx"));
  const Wire graph = Wire{folder.read("one.onnx")}.message(7);
  std::vector<std::string> names;
  for (const auto& tensor : graph.strings(5)) names.push_back(Wire{tensor}.bytes(8));
  CHECK(names == std::vector<std::string>{"dense/kernel", "dense/bias", "batch_normalization/gamma",
                                          "batch_normalization/beta", "batch_normalization/moving_mean",
                                          "batch_normalization/moving_variance"});
  dist::Mirrored<dist::ThreadAllReduce> two{2};
  nn::Network<Net> mirrored{two, 3};
  nn::export_onnx(two, mirrored, folder.path("two.onnx"));
  CHECK(folder.read("two.onnx") == folder.read("one.onnx"));
}

TEST_CASE("elements have the network's type") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  nn::Network<Net, nn::Reference, double> network{strategy};
  nn::export_onnx(strategy, network, folder.path("model.onnx"));
  const Wire graph = Wire{folder.read("model.onnx")}.message(7);
  constexpr int of_double = 11;
  CHECK(graph.message(11).message(2).message(1).integer(1) == of_double);
  CHECK(Wire{graph.strings(5)[0]}.integer(2) == of_double);
}

TEST_CASE("an export that fails keeps the older model") {
  const support::TemporaryFolder folder;
  folder.write("model.onnx", "older");
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<3>, nn::Dense<2>, Unknown>> network{strategy};
  CHECK_THROWS_WITH_AS(nn::export_onnx(strategy, network, folder.path("model.onnx")),
                       doctest::Contains("The layer 'unknown' cannot be exported to ONNX"), dist::InvalidArgument);
  CHECK(folder.read("model.onnx") == "older");
  nn::Network<Net> whole{strategy};
  CHECK_THROWS_AS(nn::export_onnx(strategy, whole, folder.path("none/model.onnx")), dist::FileError);
}
