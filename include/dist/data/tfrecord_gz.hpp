#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/data/tfrecord.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/gzip.hpp>

namespace dist::data {

namespace detail {

struct OpenGzip {
  [[nodiscard]] io::GzipSource<io::FileSource> operator()(const std::string& path) const {
    return io::GzipSource<io::FileSource>{io::FileSource{path}};
  }
};

}  // namespace detail

/// A dataset of the records of gzip-compressed TFRecord files, like `tfrecord`. Offsets in messages count decompressed
/// bytes.
[[nodiscard]] inline TfRecordDataset<detail::OpenGzip> tfrecord_gz(
    std::vector<std::string> files, std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  return {tfrecord(std::move(files)).files(), max_bytes};
}
/// A dataset of the records of one gzip-compressed file.
template <std::convertible_to<std::string> Path>
[[nodiscard]] TfRecordDataset<detail::OpenGzip> tfrecord_gz(Path&& file,
                                                            std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  return {tfrecord(std::forward<Path>(file)).files(), max_bytes};
}

}  // namespace dist::data
