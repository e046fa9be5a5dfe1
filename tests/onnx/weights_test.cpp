#include <dist/onnx/weights.hpp>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("tensors come one after another, without the padding between them") {
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<3>, nn::Dense<1>>;
  dist::Tensor<float> all{dist::Shape{Net::padded_count}};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  dist::onnx::Tensors<float> tensors{Net::parameters, std::move(all)};
  for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
    const auto next = tensors.next();
    CHECK(next.name == name);
    CHECK(next.values.data()[0] == static_cast<float>(nn::detail::parameter_named(Net::parameters, name).offset));
    CHECK(next.values.shape() == nn::detail::parameter_named(Net::parameters, name).shape);
  }
}
