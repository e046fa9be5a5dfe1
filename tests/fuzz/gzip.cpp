// Reads any bytes as a gzip file, and as an IDX file in one: data that do not depend on the size of reads, or a
// dist::Error, in bounded memory.
#include <dist/io/gzip.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <dist/core/error.hpp>
#include <dist/data/idx.hpp>
#include <dist/io/byte_source.hpp>

namespace {

using Source = dist::io::GzipSource<dist::io::MemorySource>;

constexpr std::size_t max_output = std::size_t{1} << 18;

/// Reads at most `max_output` bytes in steps of `step`. Returns the number of bytes, and adds them to `checksum`.
std::size_t drain(std::span<const std::byte> bytes, std::size_t step, uLong& checksum) {
  Source source{dist::io::MemorySource{bytes}};
  std::array<std::byte, 4096> buffer{};
  std::size_t total = 0;
  while (total < max_output) {
    const std::size_t count = source.read(std::span{buffer}.first(std::min(step, max_output - total)));
    if (count == 0) break;
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(count));
    total += count;
  }
  return total;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  bool accepted = false;
  uLong checksum = 0;
  std::size_t total = 0;
  try {
    total = drain(bytes, 4096, checksum);
    accepted = true;
  } catch (const dist::Error&) {
  }
  if (accepted) {  // small steps must give the same content
    uLong again = 0;
    if (drain(bytes, 61, again) != total || again != checksum) std::abort();
  }
  try {
    Source source{dist::io::MemorySource{bytes}};
    static_cast<void>(dist::data::read_idx<std::uint8_t>(source, 1000));
  } catch (const dist::Error&) {
  }
  return 0;
}
