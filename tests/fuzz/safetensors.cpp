// Reads any bytes as a safetensors file: tensors that together are the bytes after the header, or a dist::Error, in
// bounded memory.
#include <dist/io/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <dist/core/error.hpp>
#include <dist/io/random_access.hpp>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const dist::io::Safetensors file{dist::io::RandomAccessMemory{std::as_bytes(std::span{data, size})}};
    std::uint64_t place = file.entries().empty() ? size : file.entries()[0].offset;
    for (const dist::io::SafetensorsEntry& entry : file.entries()) {
      require(entry.offset == place && file.find(entry.name) == &entry);
      place += entry.bytes;
      if (!entry.type) continue;
      require(entry.bytes == entry.shape.elements() * bytes_of(*entry.type));
      try {
        require(file.read_converted<dist::Float16>(entry.name).size() == entry.shape.elements());
        require(file.read_converted<std::int16_t>(entry.name).size() == entry.shape.elements());
      } catch (const dist::FileError&) {
      }
    }
    require(place == size);
  } catch (const dist::FileError&) {
  }
  return 0;
}
