/// Fashion-MNIST (Xiao, Rasul, Vollgraf: "Fashion-MNIST: a novel image dataset for benchmarking machine
/// learning algorithms", 2017): 60000 training and 10000 test images of clothing in ten classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/idx.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/gzip.hpp>

namespace dist::data {

/// Reads the IDX file at `path`, which may be compressed by gzip: the first two bytes decide. Throws FileError like
/// `read_idx` and `io::GzipSource`.
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

/// Returns `directory` if not empty, else DIST_FASHION_MNIST_DIR, else the folder of Debian's package.
[[nodiscard]] std::string fashion_mnist_directory(std::string directory);

/// Returns the path of one of the four files, compressed or not.
[[nodiscard]] std::string fashion_mnist_file(const std::string& directory, const char* name);

}  // namespace detail

/// Fashion-MNIST as examples: `x` is an image [28, 28, 1] of floats in [0, 1], `y` its class, 0 to 9, as a scalar of
/// std::int32_t. `directory` contains the four IDX files under their usual names. Default: the environment variable
/// DIST_FASHION_MNIST_DIR, or else the folder of Debian's package dataset-fashion-mnist.
///
/// Throws FileError if a file is missing, malformed, or does not match the other one.
[[nodiscard]] TensorSlices<Example<Tensor<float>, Tensor<std::int32_t>>> fashion_mnist(Split split,
                                                                                       std::string directory = "");

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/fashion_mnist.ipp>
#endif
