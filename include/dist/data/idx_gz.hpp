#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <dist/core/tensor.hpp>
#include <dist/data/idx.hpp>
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

}  // namespace dist::data
