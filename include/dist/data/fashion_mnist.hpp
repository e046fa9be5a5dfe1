/// Fashion-MNIST (Xiao, Rasul, Vollgraf: "Fashion-MNIST: a novel image dataset for benchmarking machine
/// learning algorithms", 2017): 60000 training and 10000 test images of clothing in ten classes.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/idx.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/gzip.hpp>

namespace dist::data {

/// Reads the IDX file at `path`, compressed by gzip or not: its first two bytes tell. Throws FileError as
/// `read_idx` and `io::GzipSource` do.
template <class T>
[[nodiscard]] Tensor<T> read_idx_gz(const std::string& path, ElementLimit max_elements = idx_default_max_elements) {
  unsigned char magic[2] = {};
  {
    io::FileSource file{path};
    io::read_full(file, std::as_writable_bytes(std::span{magic}));
  }
  if (magic[0] == 0x1F && magic[1] == 0x8B) {
    io::GzipSource<io::FileSource> source{io::FileSource{path}};
    return read_idx<T>(source, max_elements);
  }
  io::FileSource source{path};
  return read_idx<T>(source, max_elements);
}

namespace detail {

/// Where the four files lie: `directory` if it is given, else DIST_FASHION_MNIST_DIR, else where Debian's
/// package puts them.
[[nodiscard]] inline std::string fashion_mnist_directory(std::string directory) {
  if (!directory.empty()) return directory;
  const char* chosen = std::getenv("DIST_FASHION_MNIST_DIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/usr/share/datasets/fashion-mnist";
}

/// The path of one file of the four, compressed or not.
[[nodiscard]] inline std::string fashion_mnist_file(const std::string& directory, const char* name) {
  const std::string plain = directory + "/" + name;
  const std::string compressed = plain + ".gz";
  if (::access(compressed.c_str(), F_OK) == 0) return compressed;
  if (::access(plain.c_str(), F_OK) == 0) return plain;
  throw FileError(compressed, "is missing", concat("it is not in '", directory, "', nor uncompressed"),
                  "Run apt install dataset-fashion-mnist, or set DIST_FASHION_MNIST_DIR to the folder that holds it");
}

}  // namespace detail

/// Fashion-MNIST as examples: `x` an image [28, 28, 1] of floats in [0, 1], `y` its class, 0 to 9, as a
/// scalar of std::int32_t. `directory` holds the four IDX files under their usual names; without it, the
/// environment variable DIST_FASHION_MNIST_DIR or Debian's package dataset-fashion-mnist says where they are.
///
/// Throws FileError when a file is missing, not sound, or does not fit the other one.
[[nodiscard]] inline TensorSlices<Example<Tensor<float>, Tensor<std::int32_t>>> fashion_mnist(
    Split split, std::string directory = "") {
  constexpr std::size_t side = 28;
  constexpr unsigned classes = 10;
  constexpr std::size_t most_examples = 1'000'000;

  directory = detail::fashion_mnist_directory(std::move(directory));
  const bool train = split == Split::train;
  const std::string image_file =
      detail::fashion_mnist_file(directory, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte");
  const std::string label_file =
      detail::fashion_mnist_file(directory, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte");
  const char* suggestion = "Give the files of Fashion-MNIST, those of one split from one release";

  const Tensor<std::uint8_t> labels = read_idx_gz<std::uint8_t>(label_file, {most_examples, suggestion});
  if (labels.shape().rank() != 1)
    throw FileError(label_file, "does not hold labels",
                    concat("its shape is ", to_string(labels.shape()), ", expected one axis"), suggestion);
  const std::size_t count = labels.rows();
  Tensor<std::int32_t> y{Shape{count}};
  for (std::size_t i = 0; i < count; ++i) {
    if (labels[i] >= classes)
      throw FileError(label_file, "has a label that is no class",
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
