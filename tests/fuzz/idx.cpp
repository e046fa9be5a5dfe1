// Reads any bytes as an IDX file: an array that matches its header, or a dist::Error, in bounded memory.
#include <dist/data/idx.hpp>

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
    const dist::Tensor<T> array = dist::data::read_idx<T>(source, max_elements);
    const std::size_t header = 4 + 4 * array.shape().rank();
    if (array.size() > max_elements || header + array.size() * sizeof(T) != bytes.size()) std::abort();
  } catch (const dist::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  read<std::uint8_t>(bytes);
  read<std::int16_t>(bytes);
  read<double>(bytes);
  return 0;
}
