#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::onnx {

/// One tensor of a layer.
template <class T>
struct NamedTensor {
  std::string name;
  TensorView<const T> values;
};

/// The tensors of one kind of a network, which its layers take one after another: what they learn, or what they keep.
template <class T>
class Tensors {
 public:
  Tensors(std::span<const nn::Parameter> layout, Tensor<T> all) : layout_(layout), all_(std::move(all)) {}

  NamedTensor<T> next() {
    const nn::Parameter& tensor = layout_[next_++];
    return {tensor.name(), TensorView<const T>{all_.data() + tensor.offset, tensor.shape}};
  }

 private:
  std::span<const nn::Parameter> layout_;
  Tensor<T> all_;  // with padding
  std::size_t next_ = 0;
};

/// What the layers of a network have learnt and keep; `S` is the type of the elements of the latter.
template <class T, class S>
struct Weights {
  using Element = T;
  Tensors<T> parameters;
  Tensors<S> state;
};

}  // namespace dist::onnx
