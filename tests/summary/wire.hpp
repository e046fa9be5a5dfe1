/// A parser for the wire format of Protocol Buffers: a field is a varint with its number and type, then a varint (type
/// 0), eight bytes (1), a length and bytes (2), or four bytes (5).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dist/io/byte_source.hpp>
#include <dist/io/tfrecord.hpp>

namespace dist_test {

struct Field {
  std::uint64_t number;
  unsigned type;
  std::uint64_t value = 0;  // types 0, 1 and 5
  std::string bytes{};      // type 2
};

class Wire {
 public:
  explicit Wire(std::string_view message) {
    while (!message.empty()) {
      const std::uint64_t key = varint(message);
      Field field{key >> 3, static_cast<unsigned>(key & 7U)};
      switch (field.type) {
        case 0:
          field.value = varint(message);
          break;
        case 1:
          field.value = fixed(message, 8);
          break;
        case 2:
          field.bytes = take(message, varint(message));
          break;
        case 5:
          field.value = fixed(message, 4);
          break;
        default:
          throw std::runtime_error("a type that no field has");
      }
      fields_.push_back(field);
    }
  }

  /// Returns all fields with a number, in order.
  std::vector<Field> all(std::uint64_t number) const {
    std::vector<Field> found;
    for (const Field& field : fields_)
      if (field.number == number) found.push_back(field);
    return found;
  }
  /// Returns the only field with a number.
  Field one(std::uint64_t number) const {
    const auto found = all(number);
    if (found.size() != 1)
      throw std::runtime_error(std::to_string(found.size()) + " fields of number " + std::to_string(number));
    return found.front();
  }
  std::string bytes(std::uint64_t number) const { return one(number).bytes; }
  Wire message(std::uint64_t number) const { return Wire{bytes(number)}; }
  std::uint64_t integer(std::uint64_t number) const { return one(number).value; }
  double real(std::uint64_t number) const { return std::bit_cast<double>(one(number).value); }
  std::vector<std::string> strings(std::uint64_t number) const {
    std::vector<std::string> found;
    for (const Field& field : all(number)) found.push_back(field.bytes);
    return found;
  }
  std::size_t size() const { return fields_.size(); }

  static std::uint64_t fixed(std::string_view& message, std::size_t size) {
    const std::string bytes = take(message, size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return value;
  }

 private:
  static std::string take(std::string_view& message, std::uint64_t size) {
    if (message.size() < size) throw std::runtime_error("the message ends within a field");
    const std::string taken{message.substr(0, static_cast<std::size_t>(size))};
    message.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }
  static std::uint64_t varint(std::string_view& message) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(message, 1)[0]);
      value |= (byte & 0x7FULL) << shift;
      if (byte < 0x80) return value;
    }
  }

  std::vector<Field> fields_;
};

/// Returns the extents of a TensorProto.
inline std::vector<std::int64_t> extents_of(const Wire& tensor) {
  std::vector<std::int64_t> extents;
  for (const Field& axis : tensor.message(2).all(2))
    extents.push_back(static_cast<std::int64_t>(Wire{axis.bytes}.integer(1)));
  return extents;
}
/// Returns an array of numbers of eight bytes.
inline std::vector<double> doubles_of(std::string_view bytes) {
  std::vector<double> numbers;
  while (!bytes.empty()) numbers.push_back(std::bit_cast<double>(Wire::fixed(bytes, 8)));
  return numbers;
}
/// Returns the value of a scalar tensor of float32.
inline float scalar_of(const Wire& tensor) {
  const std::string packed = tensor.bytes(5);
  if (packed.size() != 4) throw std::runtime_error("not one float32");
  std::string_view bytes = packed;
  return std::bit_cast<float>(static_cast<std::uint32_t>(Wire::fixed(bytes, 4)));
}

/// Returns the events of a file, with verified checksums.
inline std::vector<std::string> events_of(const std::string& path) {
  dist::io::TfRecordReader reader{dist::io::FileSource{path}};
  std::vector<std::string> events;
  for (std::string event; reader.next(event);) events.push_back(event);
  return events;
}

}  // namespace dist_test
