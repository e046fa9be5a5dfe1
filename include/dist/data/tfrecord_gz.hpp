#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/data/tfrecord.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/gzip.hpp>

namespace dist::data {

namespace detail {

/// A source that can move, of a file that is decompressed, whose state cannot.
class MovableGzip {
 public:
  explicit MovableGzip(const std::string& path)
      : source_(std::make_unique<io::GzipSource<io::FileSource>>(io::FileSource{path})) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) { return source_->read(buffer); }
  [[nodiscard]] const std::string& name() const noexcept { return source_->name(); }

 private:
  std::unique_ptr<io::GzipSource<io::FileSource>> source_;
};

struct OpenGzip {
  [[nodiscard]] MovableGzip operator()(const std::string& path) const { return MovableGzip{path}; }
};

}  // namespace detail

/// As `tfrecord`, of files that gzip compressed. Offsets in messages count decompressed bytes.
[[nodiscard]] inline TfRecordDataset<detail::OpenGzip> tfrecord_gz(
    std::vector<std::string> files, std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  return {tfrecord(std::move(files)).files(), max_bytes};
}
template <std::convertible_to<std::string> Path>
[[nodiscard]] TfRecordDataset<detail::OpenGzip> tfrecord_gz(Path&& file,
                                                            std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  return {tfrecord(std::forward<Path>(file)).files(), max_bytes};
}

}  // namespace dist::data
