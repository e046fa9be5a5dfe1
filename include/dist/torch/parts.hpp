/// The tensors of libtorch modules. Only this header and module.hpp include libtorch. Works with libtorch 1.13 and
/// newer.
#pragma once

#if !__has_include(<torch/nn/module.h>)
#error "<torch/nn/module.h> of libtorch was not found: install libtorch-dev, and link dist::torch"
#endif

// First: other headers of libtorch 1.13 use a vector of a type that is complete only here, which clang++ rejects.
#include <ATen/core/ivalue.h>

#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/parameter.hpp>

namespace dist {

namespace detail {

/// A module's tensors of one kind and their places in a variable, in order.
class TorchTensors {
 public:
  void add(std::string name, const torch::Tensor& tensor) {
    const auto is_same = [&](const torch::Tensor& other) { return other.is_same(tensor); };
    if (std::any_of(tensors_.begin(), tensors_.end(), is_same))
      return;  // shared within the module: under its first name
    names_.push_back(std::move(name));
    tensors_.push_back(tensor);
    shapes_.push_back(shape_of(tensor));
  }

  [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<torch::Tensor>& tensors() const noexcept { return tensors_; }
  /// Returns a line for each tensor.
  [[nodiscard]] std::string description(std::string_view kind) const {
    std::string lines;
    for (std::size_t i = 0; i < size(); ++i)
      lines += concat(kind, " '", names_[i], "' of shape ", to_string(shapes_[i]), '\n');
    return lines;
  }

  /// Returns their places, which refer to the names here.
  [[nodiscard]] std::vector<nn::Parameter> layout() const {
    std::vector<nn::Parameter> places;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string_view name = names_[i];
      const std::size_t dot = name.rfind('.');
      const std::string_view owner = dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
      places.push_back({.layer = owner,
                        .ordinal = 0,
                        .kind = dot == std::string_view::npos ? name : name.substr(dot + 1),
                        .shape = shapes_[i],
                        .offset = offset,
                        .separator = '.'});
      offset += nn::padded(shapes_[i].elements());
    }
    return places;
  }

  [[nodiscard]] static Shape shape_of(const torch::Tensor& tensor) {
    std::vector<std::size_t> extents;
    for (const std::int64_t extent : tensor.sizes()) extents.push_back(static_cast<std::size_t>(extent));
    return Shape{std::span<const std::size_t>{extents}};
  }

 private:
  std::vector<std::string> names_;
  std::vector<torch::Tensor> tensors_;
  std::vector<Shape> shapes_;
};

/// Returns the first line in which two descriptions differ, of both.
[[nodiscard]] inline std::array<std::string, 2> first_difference(std::string_view one, std::string_view other) {
  const auto end_of_equal = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
  const std::string_view equal = one.substr(0, static_cast<std::size_t>(end_of_equal - one.begin()));
  const std::size_t first = equal.rfind('\n') + 1;  // 0 if no line is equal
  const auto line = [first](std::string_view all) {
    const std::string_view found = all.substr(first, all.find('\n', first) - first);
    return std::string{found.empty() ? "no more tensors" : found};
  };
  return {line(one), line(other)};
}

/// Returns the elements of a variable with this layout, with padding.
[[nodiscard]] inline std::size_t elements_of(std::span<const nn::Parameter> layout) {
  return layout.empty() ? 0 : layout.back().offset + nn::padded(layout.back().shape.elements());
}

/// A module's tensors: trained parameters, float state, and counts.
struct TorchParts {
  TorchTensors learned, kept, counted;
  std::string description;  // equal for modules that are trained together

  /// Throws InvalidArgument for parameters other than floats in the host's memory, and for a module without parameters
  /// to train.
  explicit TorchParts(const torch::nn::Module& module) {
    for (const auto& named : module.named_parameters()) {
      require_float_on_host(named.key(), named.value());
      (named.value().requires_grad() ? learned : kept).add(named.key(), named.value());
    }
    for (const auto& named : module.named_buffers()) {
      const torch::Tensor& buffer = named.value();
      if (!buffer.defined() || !buffer.device().is_cpu()) continue;
      if (buffer.scalar_type() == torch::kFloat32) kept.add(named.key(), buffer);
      if (buffer.scalar_type() == torch::kInt64) counted.add(named.key(), buffer);
    }
    description =
        learned.description("parameter") + kept.description("constant or buffer") + counted.description("count");
    if (learned.size() == 0)
      throw InvalidArgument(concat("Module ", module.name(), " of libtorch has nothing to train"),
                            "it has no parameter that requires a gradient",
                            "Give torch_module a module with such a parameter");
  }

 private:
  static void require_float_on_host(const std::string& name, const torch::Tensor& parameter) {
    if (parameter.scalar_type() == torch::kFloat32 && parameter.device().is_cpu()) return;
    throw InvalidArgument(
        concat("Parameter '", name, "' of a module of libtorch cannot be stored in a strategy's memory"),
        concat("it has elements of type ", c10::toString(parameter.scalar_type()), " on ", parameter.device().str(),
               ", and a torch_module has floats on the CPU"),
        "Keep the module's original type and device, or call module->to(torch::kFloat32)");
  }
};

/// Returns libtorch's sizes of a shape.
[[nodiscard]] inline std::vector<std::int64_t> torch_sizes(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const std::size_t extent : shape.extents()) sizes.push_back(static_cast<std::int64_t>(extent));
  return sizes;
}

}  // namespace detail

/// Returns a libtorch tensor over the elements of a view in the host's memory, which must outlive it.
template <class T>
[[nodiscard]] torch::Tensor torch_tensor(TensorView<T> view) {
  using Number = std::remove_const_t<T>;
  return torch::from_blob(const_cast<Number*>(view.data()), detail::torch_sizes(view.shape()),
                          torch::TensorOptions{}.dtype(c10::CppTypeToScalarType<Number>()));
}

}  // namespace dist
