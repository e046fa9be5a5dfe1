// Handwritten checkpoints for tests of their readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/checkpoint/manifest.hpp>
#include <dist/checkpoint/snapshot.hpp>

#include <support/temporary_folder.hpp>

namespace checkpoint_tests {

/// Writes the manifest for existing files in the folder `name`.
inline void complete(const support::TemporaryFolder& folder, const std::string& name,
                     const std::vector<std::string>& files, std::uint64_t serial = 1) {
  dist::detail::Manifest manifest{.id = 1, .serial = serial, .files = {}};
  for (const std::string& file : files) manifest.files.push_back(dist::detail::describe_shard(folder.path(name), file));
  folder.write(name + "/manifest.json", written(manifest));
}

/// Writes a checkpoint of tensors "a" (1000 floats), "b" (3 integers) and "c" (a number) in files of `processes`
/// processes. Returns the file names.
inline std::vector<std::string> write_checkpoint(const support::TemporaryFolder& folder, const std::string& name,
                                                 std::size_t processes = 2, std::uint64_t serial = 1) {
  folder.write(name + "/here", "");
  std::vector<std::string> files;
  for (std::size_t rank = 0; rank < processes; ++rank) {
    dist::detail::Snapshot snapshot{rank, processes};
    dist::Tensor<float> a{{10, 100}};
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) / 8;
    dist::Tensor<std::int32_t> b{{3}};
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int32_t>(100 * i);
    snapshot.put("a", std::move(a));
    snapshot.put("b", std::move(b));
    snapshot.put_number("c", 2.5);
    files.push_back(dist::detail::shard_name(serial, rank, processes));
    write_shard(folder.path(name) + "/" + files.back(), snapshot);
  }
  complete(folder, name, files, serial);
  return files;
}

}  // namespace checkpoint_tests
