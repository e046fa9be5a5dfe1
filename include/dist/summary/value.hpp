/// What TensorBoard shows under a tag at a step: scalars, histograms, images and text, as TensorFlow 2 writes them.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/summary/protobuf.hpp>

namespace dist::summary {

/// A value of a summary: a tensor, and the plugin of TensorBoard that shows it.
struct Value {
  std::string plugin;   ///< the plugin's name
  std::string content;  ///< what the plugin is told besides, a serialised message of its own
  std::string tensor;   ///< a serialised TensorProto
};

/// An image that is encoded already: `png` are the bytes of a PNG file, width and height are in pixels. To encode pixels,
/// see io/png.hpp.
struct Image {
  std::size_t width;
  std::size_t height;
  std::string_view png;
};

namespace detail {

/// Types of elements by their numbers in TensorFlow's DataType.
enum class DataType : std::int32_t { float32 = 1, float64 = 2, string = 7 };

/// A TensorProto of these extents, whose elements `add_elements` adds.
template <class AddElements>
[[nodiscard]] std::string tensor(DataType type, std::span<const std::int64_t> extents, AddElements add_elements) {
  return protobuf([&](Protobuf& tensor) {
    tensor.add_enum(1, static_cast<std::int32_t>(type));
    tensor.add_message(2, shape_message(extents));
    add_elements(tensor);
  });
}
template <class AddElements>
[[nodiscard]] std::string tensor(DataType type, std::initializer_list<std::int64_t> extents, AddElements add_elements) {
  return tensor(type, std::span<const std::int64_t>{extents.begin(), extents.size()}, add_elements);
}

/// The bucket of `value` among `buckets` of equal width from `least` to `greatest`, which is in the last one. Differences
/// are halved, so that none overflows.
[[nodiscard]] inline std::size_t bucket_of(double value, double least, double half_width, std::size_t buckets) {
  const double place = (value / 2 - least / 2) / half_width;
  return std::min(static_cast<std::size_t>(place), buckets - 1);
}

}  // namespace detail

/// A number for the plugin "scalars", as float32, which is all that TensorBoard keeps of it.
[[nodiscard]] inline Value scalar_value(double value) {
  return {"scalars", "", detail::tensor(detail::DataType::float32, {}, [&](detail::Protobuf& tensor) {
            const float element = static_cast<float>(value);
            tensor.add_packed_float(5, &element, &element + 1);
          })};
}

/// A histogram of `values` for the plugin "histograms": a float64 tensor [buckets, 3], whose rows are the left edge, the
/// right edge and the count of buckets of equal width. Where all values are equal they are in the last bucket, and every
/// edge is that value; without values everything is 0. Values that are not finite are in no bucket. Throws
/// InvalidArgument for no buckets.
template <class T>
[[nodiscard]] Value histogram_value(std::span<const T> values, std::size_t buckets = 30) {
  static_assert(std::is_arithmetic_v<T>, "histogram_value: the values must be numbers");
  if (buckets == 0)
    throw InvalidArgument("A histogram has no buckets", "buckets is 0", "Use 1 or more, or leave it out");
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const T each : values) {
    const double value = static_cast<double>(each);
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  const bool empty = least > greatest;
  if (empty) least = greatest = 0;
  const double half_width = (greatest / 2 - least / 2) / static_cast<double>(buckets);
  std::vector<double> counts(buckets);
  for (const T each : values) {
    const double value = static_cast<double>(each);
    if (std::isfinite(value))
      ++counts[half_width > 0 ? detail::bucket_of(value, least, half_width, buckets) : buckets - 1];
  }
  const auto edge = [&](std::size_t i) {
    return i == buckets ? greatest : 2 * (least / 2 + half_width * static_cast<double>(i));
  };
  std::vector<std::byte> bytes(buckets * 3 * sizeof(double));
  std::byte* to = bytes.data();
  const auto put = [&to](double number) {
    io::store_little_endian(std::bit_cast<std::uint64_t>(number), to);
    to += sizeof number;
  };
  for (std::size_t i = 0; i < buckets; ++i) {
    put(edge(i));
    put(edge(i + 1));
    put(counts[i]);
  }
  return {
      "histograms", "",
      detail::tensor(detail::DataType::float64, {static_cast<std::int64_t>(buckets), 3}, [&](detail::Protobuf& tensor) {
        tensor.add_bytes(4, reinterpret_cast<const char*>(bytes.data()), bytes.size());
      })};
}

/// Images for the plugin "images": a tensor of strings, which are the width and the height of the first image, then the
/// PNG file of each. Throws InvalidArgument for no images, and for bytes that are no PNG file.
[[nodiscard]] inline Value image_value(std::span<const Image> images) {
  constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
  if (images.empty())
    throw InvalidArgument("An image summary has no images", "the list is empty", "Give it one or more");
  for (const Image& image : images)
    if (image.png.substr(0, signature.size()) != signature)
      throw InvalidArgument("An image of a summary is no PNG file", "its first bytes are others",
                            "Encode the pixels with io::encode_png, or give the bytes of a PNG file");
  return {"images", "",
          detail::tensor(detail::DataType::string, {static_cast<std::int64_t>(images.size() + 2)},
                         [&](detail::Protobuf& tensor) {
                           tensor.add_bytes(8, std::to_string(images.front().width));
                           tensor.add_bytes(8, std::to_string(images.front().height));
                           for (const Image& image : images) tensor.add_bytes(8, image.png.data(), image.png.size());
                         })};
}

/// Text for the plugin "text", which shows it as Markdown.
[[nodiscard]] inline Value text_value(std::string_view markdown) {
  return {"text", "", detail::tensor(detail::DataType::string, {}, [&](detail::Protobuf& tensor) {
            tensor.add_bytes(8, markdown.data(), markdown.size());
          })};
}

}  // namespace dist::summary
