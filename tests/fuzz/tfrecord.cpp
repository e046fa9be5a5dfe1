// Reads any bytes as a TFRecord file, in steps of any size: records that together are the file, or a dist::Error, in
// bounded memory.
#include <dist/io/tfrecord.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>

namespace {

/// A source that returns at most `step` bytes per read.
struct Trickle {
  dist::io::MemorySource source;
  std::size_t step;

  std::size_t read(std::span<std::byte> buffer) { return source.read(buffer.first(std::min(step, buffer.size()))); }
  const std::string& name() const { return source.name(); }
};

/// Appends the records to a new file. Returns true if all were valid.
bool copy(std::span<const std::byte> bytes, std::size_t step, std::string& file) {
  try {
    dist::io::TfRecordReader reader{Trickle{dist::io::MemorySource{bytes}, step}, std::size_t{1} << 40};
    std::string record;
    while (reader.next(record)) dist::io::append_tfrecord(file, record);
    return true;
  } catch (const dist::Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  std::string file;
  std::string again;
  const bool sound = copy(bytes, size + 1, file);
  if (copy(bytes, 7, again) != sound || again != file || file.size() > size) std::abort();
  if (sound && file.size() != size) std::abort();
  if (!file.empty() && std::memcmp(file.data(), data, file.size()) != 0) std::abort();
  return 0;
}
