// Parses any bytes as a serialized tf.train.Example: features within the bytes, or a dist::Error, in bounded memory.
#include <dist/data/tf_example.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <dist/core/error.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view record{reinterpret_cast<const char*>(data), size};
  dist::data::TfExample example;
  try {
    example.parse(record);
  } catch (const dist::Error&) {
    return 0;
  }
  try {
    for (const std::string_view bytes : example.bytes("name"))
      if (bytes.size() > size || (!bytes.empty() && bytes.data() < record.data())) std::abort();
  } catch (const dist::Error&) {
  }
  try {
    if (example.floats("image").size() > size || example.ints("image").size() > size) std::abort();
  } catch (const dist::Error&) {
  }
  return 0;
}
