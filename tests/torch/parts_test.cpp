#include <dist/torch/parts.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#undef CHECK  // of libtorch's log
#include <doctest/doctest.h>
#include <support/what_throws.hpp>

namespace {

dist::detail::TorchParts parts_of(const torch::nn::Sequential& module) { return dist::detail::TorchParts{*module}; }

}  // namespace

TEST_CASE("TorchParts splits a module into trained, kept and counted tensors, each once") {
  torch::nn::Linear frozen{2, 3};
  frozen->bias.set_requires_grad(false);
  const auto parts = parts_of(torch::nn::Sequential{frozen, torch::nn::BatchNorm1d{3}, frozen});
  CHECK(parts.learned.names() == std::vector<std::string>{"0.weight", "1.weight", "1.bias"});
  CHECK(parts.kept.names() == std::vector<std::string>{"0.bias", "1.running_mean", "1.running_var"});
  CHECK(parts.counted.names() == std::vector<std::string>{"1.num_batches_tracked"});
  const auto layout = parts.learned.layout();
  CHECK(layout[0].shape == dist::Shape{3, 2});
  CHECK(layout[1].offset == 16);
  CHECK(dist::detail::elements_of(layout) == 48);

  const auto what = support::what_throws<dist::InvalidArgument>([] { parts_of(torch::nn::Sequential{}); });
  CHECK(what.find("has nothing to train") != std::string::npos);
}

TEST_CASE("first_difference returns the first line in which descriptions differ") {
  using dist::detail::first_difference;
  const auto one = parts_of(torch::nn::Sequential{torch::nn::Linear{2, 3}}).description;
  CHECK(one == "parameter '0.weight' of shape [3, 2]\nparameter '0.bias' of shape [3]\n");
  const auto longer = one + "count 'steps' of shape []\n";
  CHECK(first_difference(one, longer)[0] == "no more tensors");
  CHECK(first_difference(one, longer)[1] == "count 'steps' of shape []");
  CHECK(first_difference("a 1\nb 2\n", "a 1\nb 3\n")[1] == "b 3");
  CHECK(first_difference("x\n", "y\n")[0] == "x");
}

TEST_CASE("torch_tensor over a view has its elements and shape") {
  std::vector<std::int64_t> values{1, 2, 3, 4, 5, 6};
  const torch::Tensor tensor = dist::torch_tensor(dist::TensorView<std::int64_t>{values.data(), dist::Shape{3, 2}});
  CHECK(tensor.sizes() == torch::IntArrayRef{3, 2});
  CHECK(tensor[2][0].item<std::int64_t>() == 5);
  CHECK(tensor.data_ptr() == values.data());
}
