// Reads any bytes as an NPZ file: arrays within the limit, or a dist::Error, in bounded memory.
#include <dist/io/npz.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include <dist/core/error.hpp>
#include <dist/io/random_access.hpp>

namespace {

constexpr std::size_t max_elements = std::size_t{1} << 16;

template <class T>
void read(const dist::io::Npz<dist::io::RandomAccessMemory>& npz, const std::string& name) {
  try {
    if (npz.read<T>(name, max_elements).size() > max_elements) std::abort();
  } catch (const dist::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const dist::io::Npz npz{dist::io::RandomAccessMemory{std::as_bytes(std::span{data, size})}};
    for (const std::string& name : npz.names()) {
      read<float>(npz, name);
      read<std::int64_t>(npz, name);
    }
  } catch (const dist::Error&) {
  }
  return 0;
}
