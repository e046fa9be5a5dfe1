// Reads any bytes as an NPY file: an array within the limit and not larger than the bytes, or a dist::Error, in bounded
// memory.
#include <dist/io/npy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>

namespace {

constexpr std::size_t max_elements = std::size_t{1} << 20;

template <class T>
void read(std::span<const std::byte> bytes) {
  dist::io::MemorySource source{bytes};
  try {
    const dist::Tensor<T> array = dist::io::read_npy<T>(source, max_elements);
    if (array.size() > max_elements || array.size() * sizeof(T) > bytes.size()) std::abort();
  } catch (const dist::Error&) {
  }
}

template <class T>
void read_converted(std::span<const std::byte> bytes) {
  dist::io::MemorySource source{bytes};
  try {
    if (dist::io::read_npy_converted<T>(source, max_elements).size() > bytes.size()) std::abort();
  } catch (const dist::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  read<bool>(bytes);
  read<std::uint8_t>(bytes);
  read<dist::Float16>(bytes);
  read<double>(bytes);
  read_converted<dist::BFloat16>(bytes);
  read_converted<std::int16_t>(bytes);
  return 0;
}
