/// CIFAR-10 and CIFAR-100 (Krizhevsky: "Learning multiple layers of features from tiny images", 2009): 50000 training
/// and 10000 test images of 32 x 32 pixels, in 10 or 100 classes. Reads the binary version: one byte per label, then
/// the red, the green and the blue channel, each row-major.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/random_access.hpp>

namespace dist::data {

/// The label of CIFAR-100 to use: one of 20 superclasses, or one of 100 classes.
enum class CifarLabel : unsigned char { coarse, fine };

namespace detail {

/// The record layout of a dataset, and a suggestion for error messages.
struct CifarFormat {
  std::size_t labels;  // bytes before the pixels
  std::size_t label;   // index of the label to use
  unsigned classes;
  const char* suggestion;
};

inline constexpr std::size_t cifar_side = 32;
inline constexpr std::size_t cifar_channels = 3;

/// Returns the number of records of `file`. Throws FileError if its size does not fit any release.
[[nodiscard]] inline std::size_t cifar_records(const io::RandomAccessFile& file, const CifarFormat& format) {
  constexpr std::uint64_t most = 1'000'000;
  const std::uint64_t size = format.labels + cifar_side * cifar_side * cifar_channels;
  if (file.size() == 0 || file.size() % size != 0 || file.size() / size > most)
    throw FileError(file.name(), "does not hold records of CIFAR",
                    concat("it has ", file.size(), " bytes, expected 1 to ", most, " records of ", size, " bytes"),
                    format.suggestion);
  return static_cast<std::size_t>(file.size() / size);
}

template <class Pixel>
[[nodiscard]] TensorSlices<Example<Tensor<Pixel>, Tensor<std::int32_t>>> read_cifar(
    const std::vector<std::string>& paths, const CifarFormat& format) {
  constexpr bool is_pixel = std::same_as<Pixel, float> || std::same_as<Pixel, std::uint8_t>;
  static_assert(is_pixel, "CIFAR: pixels are float, in [0, 1], or std::uint8_t");
  constexpr std::size_t pixels = cifar_side * cifar_side;
  const std::size_t record = format.labels + pixels * cifar_channels;

  std::vector<io::RandomAccessFile> files;
  std::size_t count = 0;
  for (const std::string& path : paths) count += cifar_records(files.emplace_back(path), format);

  Tensor<Pixel> x{Shape{count, cifar_side, cifar_side, cifar_channels}};
  Tensor<std::int32_t> y{Shape{count}};
  std::vector<std::uint8_t> records(256 * record);
  std::size_t image = 0;
  for (const io::RandomAccessFile& file : files)
    for (std::uint64_t offset = 0; offset < file.size();) {
      const std::size_t bytes = file.read_at(offset, std::as_writable_bytes(std::span{records}));
      if (bytes == 0 || bytes % record != 0)
        throw FileError(file.name(), "is truncated", concat("it changed while it was read, at byte ", offset + bytes),
                        format.suggestion);
      for (std::size_t start = 0; start < bytes; start += record, ++image) {
        const unsigned label = records[start + format.label];
        if (label >= format.classes)
          throw FileError(
              file.name(), "has a label that is not a class",
              concat("label ", (offset + start) / record, " is ", label, ", expected 0 to ", format.classes - 1),
              format.suggestion);
        y[image] = static_cast<std::int32_t>(label);
        const std::uint8_t* const from = records.data() + start + format.labels;
        Pixel* const to = x.data() + image * pixels * cifar_channels;
        for (std::size_t channel = 0; channel < cifar_channels; ++channel)
          for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
            const std::uint8_t value = from[channel * pixels + pixel];
            if constexpr (std::same_as<Pixel, float>)
              to[pixel * cifar_channels + channel] = static_cast<float>(value) / 255.0F;
            else
              to[pixel * cifar_channels + channel] = value;
          }
      }
      offset += bytes;
    }
  return tensor_slices(std::move(x), std::move(y));
}

}  // namespace detail

/// CIFAR-10 as examples: `x` is an image [32, 32, 3] of floats in [0, 1], or of bytes with `cifar10<std::uint8_t>`; `y`
/// is its class, 0 to 9, as a scalar of std::int32_t. `folder` contains data_batch_1.bin to data_batch_5.bin and
/// test_batch.bin.
///
/// Throws FileError if a file is missing, is not a whole number of records, or has an invalid label.
template <class Pixel = float>
[[nodiscard]] TensorSlices<Example<Tensor<Pixel>, Tensor<std::int32_t>>> cifar10(const std::string& folder,
                                                                                 Split split) {
  std::vector<std::string> files;
  if (split == Split::test) {
    files.push_back(folder + "/test_batch.bin");
  } else {
    for (const char* number : {"1", "2", "3", "4", "5"}) files.push_back(folder + "/data_batch_" + number + ".bin");
  }
  return detail::read_cifar<Pixel>(
      files, {1, 0, 10, "Give the folder cifar-10-batches-bin of cifar-10-binary.tar.gz, the binary version"});
}

/// CIFAR-100 as examples: `x` is an image as in `cifar10`; `y` is the class, 0 to 99, or the superclass, 0 to 19.
/// `folder` contains train.bin and test.bin. Throws FileError like `cifar10`.
template <class Pixel = float>
[[nodiscard]] TensorSlices<Example<Tensor<Pixel>, Tensor<std::int32_t>>> cifar100(const std::string& folder,
                                                                                  Split split,
                                                                                  CifarLabel label = CifarLabel::fine) {
  const bool fine = label == CifarLabel::fine;
  return detail::read_cifar<Pixel>({folder + (split == Split::test ? "/test.bin" : "/train.bin")},
                                   {2, fine ? std::size_t{1} : std::size_t{0}, fine ? 100U : 20U,
                                    "Give the folder cifar-100-binary of cifar-100-binary.tar.gz, the binary version"});
}

}  // namespace dist::data
