#pragma once

#include <cstddef>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include <dist/core/error.hpp>
#include <dist/data/fashion_mnist.hpp>

namespace dist::data::detail {

DIST_INLINE std::string fashion_mnist_directory(std::string directory) {
  if (!directory.empty()) return directory;
  const char* chosen = std::getenv("DIST_FASHION_MNIST_DIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/usr/share/datasets/fashion-mnist";
}

DIST_INLINE std::string fashion_mnist_file(const std::string& directory, const char* name) {
  const std::string plain = directory + "/" + name;
  const std::string compressed = plain + ".gz";
  if (::access(compressed.c_str(), F_OK) == 0) return compressed;
  if (::access(plain.c_str(), F_OK) == 0) return plain;
  throw FileError(compressed, "is missing", concat("it is not in '", directory, "', compressed or uncompressed"),
                  "Run apt install dataset-fashion-mnist, or set DIST_FASHION_MNIST_DIR to the folder that holds it");
}

}  // namespace dist::data::detail

namespace dist::data {

DIST_INLINE TensorSlices<Example<Tensor<float>, Tensor<std::int32_t>>> fashion_mnist(Split split,
                                                                                     std::string directory) {
  constexpr std::size_t side = 28;
  constexpr unsigned classes = 10;
  constexpr std::size_t most_examples = 1'000'000;

  directory = detail::fashion_mnist_directory(std::move(directory));
  const bool train = split == Split::train;
  const std::string image_file =
      detail::fashion_mnist_file(directory, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte");
  const std::string label_file =
      detail::fashion_mnist_file(directory, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte");
  const char* suggestion = "Give the files of Fashion-MNIST, with both files of a split from the same release";

  const Tensor<std::uint8_t> labels = read_idx_gz<std::uint8_t>(label_file, {most_examples, suggestion});
  if (labels.shape().rank() != 1)
    throw FileError(label_file, "does not hold labels",
                    concat("its shape is ", to_string(labels.shape()), ", expected one axis"), suggestion);
  const std::size_t count = labels.rows();
  Tensor<std::int32_t> y{Shape{count}};
  for (std::size_t i = 0; i < count; ++i) {
    if (labels[i] >= classes)
      throw FileError(label_file, "has a label that is not a class",
                      concat("label ", i, " is ", unsigned{labels[i]}, ", expected 0 to ", classes - 1), suggestion);
    y[i] = labels[i];
  }

  const Tensor<std::uint8_t> images = read_idx_gz<std::uint8_t>(image_file, {most_examples * side * side, suggestion});
  const Shape& shape = images.shape();
  if (shape.rank() != 3 || shape[1] != side || shape[2] != side)
    throw FileError(image_file, "does not hold images of 28 x 28", concat("its shape is ", to_string(shape)),
                    suggestion);
  if (shape[0] != count)
    throw FileError(image_file, concat("does not fit '", label_file, "'"),
                    concat(shape[0], " images, ", count, " labels"), suggestion);
  Tensor<float> x{Shape{count, side, side, 1}};
  const std::uint8_t* from = images.data();
  float* to = x.data();
  for (std::size_t i = 0; i < images.size(); ++i) to[i] = static_cast<float>(from[i]) / 255.0F;
  return tensor_slices(std::move(x), std::move(y));
}

}  // namespace dist::data
