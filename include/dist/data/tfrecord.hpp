#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/files.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/tfrecord.hpp>

namespace dist::data {

namespace detail {

/// Opens an uncompressed file.
struct OpenPlain {
  [[nodiscard]] io::FileSource operator()(const std::string& path) const { return io::FileSource{path}; }
};

}  // namespace detail

/// The records of files, one file after the other. Made by `tfrecord`.
template <class Open>
class TfRecordDataset : public DatasetRange<TfRecordDataset<Open>> {
  using Reader = io::TfRecordReader<decltype(Open{}(std::string{}))>;

 public:
  using Element = std::string;

  /// The source that `tfrecord(files, max_bytes)` makes.
  TfRecordDataset(std::vector<std::string> files, std::size_t max_bytes)
      : files_(std::move(files)), max_bytes_(max_bytes) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const TfRecordDataset& dataset) : dataset_(&dataset) {}

    bool next(std::string& record) {
      for (;;) {
        if (reader_ == nullptr) {
          if (file_ == dataset_->files_.size()) return false;
          reader_ = std::make_unique<Reader>(Open{}(dataset_->files_[file_++]), dataset_->max_bytes_);
        }
        if (reader_->next(record)) return true;
        reader_.reset();
      }
    }

   private:
    const TfRecordDataset* dataset_;
    std::unique_ptr<Reader> reader_;  // of the file before `file_`
    std::size_t file_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  /// Unknown: records are counted in the pass.
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::unknown(); }

  /// The paths of the files that are read.
  [[nodiscard]] const std::vector<std::string>& files() const noexcept { return files_; }
  [[nodiscard]] std::size_t num_files() const noexcept { return files_.size(); }
  /// The records of every `shards`-th file, starting at file `shard` (spec I08). Throws InvalidArgument if `shard` is
  /// out of range, or if there are fewer files than shards.
  [[nodiscard]] TfRecordDataset shard_files(std::size_t shards, std::size_t shard) const {
    return {detail::files_of_shard(files_, shards, shard), max_bytes_};
  }

 private:
  std::vector<std::string> files_;
  std::size_t max_bytes_;
};

/// A dataset of the records of TFRecord files, in the order of the list. A record is a std::string of bytes, whose
/// memory is reused. A file is opened when the pass reaches it.
///
/// Throws InvalidArgument if `files` is empty. A pass throws FileError if a file is missing or malformed, or if a
/// record has more than `max_bytes` bytes.
[[nodiscard]] inline TfRecordDataset<detail::OpenPlain> tfrecord(
    std::vector<std::string> files, std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  if (files.empty()) throw InvalidArgument("tfrecord has nothing to read", "the list of files is empty", "Name a file");
  return {std::move(files), max_bytes};
}
/// A dataset of the records of one file.
template <std::convertible_to<std::string> Path>
[[nodiscard]] TfRecordDataset<detail::OpenPlain> tfrecord(Path&& file,
                                                          std::size_t max_bytes = io::tfrecord_default_max_bytes) {
  return {std::vector<std::string>(1, std::forward<Path>(file)), max_bytes};
}

}  // namespace dist::data
