#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/shard.hpp>

namespace dist::data {

namespace detail {

/// Returns files `shard`, `shard + shards`, ... of the list. Throws like `FilesDataset::shard_files`.
template <class File>
[[nodiscard]] std::vector<File> files_of_shard(const std::vector<File>& files, std::size_t shards, std::size_t shard) {
  require_shard(shards, shard);
  if (files.size() < shards)
    throw InvalidArgument("There are fewer files than shards", concat(files.size(), " files, ", shards, " shards"),
                          "Write the data to more files, or shard the elements instead of the files");
  std::vector<File> mine;
  for (std::size_t file = shard; file < files.size(); file += shards) mine.push_back(files[file]);
  return mine;
}

}  // namespace detail

/// The paths of files. Made by `files`.
class FilesDataset : public DatasetRange<FilesDataset> {
 public:
  using Element = std::string;

  /// The source that `files(...)` makes.
  explicit FilesDataset(std::vector<std::string> files) : files_(std::move(files)) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const FilesDataset& dataset) : dataset_(&dataset) {}

    bool next(std::string& path) {
      if (file_ == dataset_->files_.size()) return false;
      path = dataset_->files_[file_++];
      return true;
    }

   private:
    const FilesDataset* dataset_;
    std::size_t file_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(files_.size()); }

  [[nodiscard]] std::size_t num_files() const noexcept { return files_.size(); }
  /// Every `shards`-th file, starting at file `shard` (spec I08). Throws InvalidArgument if `shard` is out of range, or
  /// if there are fewer files than shards.
  [[nodiscard]] FilesDataset shard_files(std::size_t shards, std::size_t shard) const {
    return FilesDataset{detail::files_of_shard(files_, shards, shard)};
  }

 private:
  std::vector<std::string> files_;
};

/// A dataset of the paths in the list, to shuffle, and to read by `interleave` or `flat_map`: `files({"a.tfrecord",
/// "b.tfrecord"}) | interleave([](const std::string& file) { return tfrecord(file); }, 2)`.
[[nodiscard]] inline FilesDataset files(std::vector<std::string> paths) { return FilesDataset{std::move(paths)}; }

}  // namespace dist::data
