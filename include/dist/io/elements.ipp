#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/text.hpp>
#include <dist/io/elements.hpp>

namespace dist::io::detail {

/// An intermediate type for all values of `T`. Conversions have two steps, from 13 element types to four intermediate
/// types, and from these to integers or to four floating-point types: fewer loops than 13 x 13.
template <class T>
using Wide = std::conditional_t<std::integral<T>, std::conditional_t<std::same_as<T, std::uint64_t>, T, std::int64_t>,
                                std::conditional_t<std::same_as<T, double>, double, float>>;

/// True if `number` is neither infinite nor NaN.
[[nodiscard]] constexpr bool is_finite(double number) noexcept { return number - number == 0; }

/// The smallest and the largest number of an integer type.
struct IntegerRange {
  std::int64_t least;
  std::uint64_t most;
};
[[nodiscard]] inline IntegerRange range_of(ElementType type) noexcept {
  if (type == ElementType::boolean) return {0, 1};
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * bytes_of(type));
  if (to_string(type)[0] == 'u') return {0, all};
  return {-static_cast<std::int64_t>(all / 2) - 1, all / 2};
}

/// Converts `number` to the bits of an integer. Returns false if no integer in the range is equal to it.
template <class Number>
[[nodiscard]] bool to_integer(Number number, IntegerRange range, std::uint64_t& bits) noexcept {
  if constexpr (std::integral<Number>) {
    bits = static_cast<std::uint64_t>(number);
    if constexpr (std::signed_integral<Number>)
      if (number < 0) return number >= range.least;
    return bits <= range.most;
  } else {
    const double beyond = 2.0 * static_cast<double>(range.most / 2 + 1);
    if (!(number >= static_cast<double>(range.least) && number < beyond)) return false;
    bits =
        number < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number)) : static_cast<std::uint64_t>(number);
    return number < 0 ? static_cast<Number>(static_cast<std::int64_t>(bits)) == number
                      : static_cast<Number>(bits) == number;
  }
}

template <class T>
[[nodiscard]] Wide<T> wide_element(const std::byte* element) noexcept {
  if constexpr (std::same_as<T, bool>) {
    return *element != std::byte{0} ? 1 : 0;
  } else {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
}

template <class From>
void widen(const std::byte* from, Wide<From>* wide, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) wide[i] = wide_element<From>(from + i * sizeof(From));
}

/// Stores the lowest `size` bytes of each. Not inlined: four callers would each contain four loops.
[[gnu::noinline]] inline void store_integers(const std::uint64_t* bits, std::size_t size, std::byte* to,
                                             std::size_t count) noexcept {
  const auto store = [&]<class Integer>() {
    for (std::size_t i = 0; i < count; ++i) {
      const auto integer = static_cast<Integer>(bits[i]);
      std::memcpy(to + i * sizeof integer, &integer, sizeof integer);
    }
  };
  if (size == 1) store.template operator()<std::uint8_t>();
  if (size == 2) store.template operator()<std::uint16_t>();
  if (size == 4) store.template operator()<std::uint32_t>();
  if (size == 8) store.template operator()<std::uint64_t>();
}

/// Both functions convert up to 512 elements. They return the index of the first one that is not representable, or
/// `count`.
template <class From>
[[nodiscard]] std::size_t narrow_to_integers(const From* wide, ElementType type, std::byte* to,
                                             std::size_t count) noexcept {
  std::uint64_t bits[512];
  const IntegerRange range = range_of(type);
  for (std::size_t i = 0; i < count; ++i)
    if (!to_integer(wide[i], range, bits[i])) {
      store_integers(bits, bytes_of(type), to, i);
      return i;
    }
  store_integers(bits, bytes_of(type), to, count);
  return count;
}
template <class From, class To>
[[nodiscard]] std::size_t narrow(const From* wide, std::byte* to, std::size_t count) noexcept {
  const auto fits = [](From from, To number) {
    return is_finite(static_cast<double>(number)) || (!std::integral<From> && !is_finite(static_cast<double>(from)));
  };
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    const To number = static_cast<To>(wide[i]);
    all = fits(wide[i], number) && all;
    std::memcpy(to + i * sizeof(To), &number, sizeof(To));
  }
  if (all) return count;
  std::size_t first = 0;
  while (fits(wide[first], static_cast<To>(wide[first]))) ++first;
  return first;
}

/// Converts up to 512 elements.
template <class From>
[[nodiscard]] std::size_t convert_block(ElementType from_type, const std::byte* from, ElementType to_type,
                                        std::byte* to, std::size_t count) {
  From wide[512];
  with_element_type(from_type, [&]<class Stored>() {
    if constexpr (std::same_as<Wide<Stored>, From>) widen<Stored>(from, wide, count);
  });
  return with_element_type(to_type, [&]<class To>() {
    if constexpr (std::integral<To>)
      return narrow_to_integers(wide, to_type, to, count);
    else
      return narrow<From, To>(wide, to, count);
  });
}

DIST_INLINE std::size_t convert_elements(ElementType from_type, const std::byte* from, ElementType to_type,
                                         std::byte* to, std::size_t count) {
  if (from_type == to_type && from_type != ElementType::boolean) {
    if (count > 0) std::memcpy(to, from, count * bytes_of(to_type));
    return count;
  }
  const auto convert = with_element_type(from_type, [&]<class From>() { return &convert_block<Wide<From>>; });
  for (std::size_t done = 0; done < count;) {
    const std::size_t block = std::min<std::size_t>(count - done, 512);
    const std::size_t converted =
        convert(from_type, from + done * bytes_of(from_type), to_type, to + done * bytes_of(to_type), block);
    done += converted;
    if (converted < block) return done;
  }
  return count;
}

DIST_INLINE void convert_read_elements(const std::string& file, std::size_t first, ElementType from_type,
                                       const std::byte* from, ElementType to_type, std::byte* to, std::size_t count) {
  const std::size_t converted = convert_elements(from_type, from, to_type, to, count);
  if (converted == count) return;
  const std::string element = with_element_type(
      from_type, [&]<class T>() { return concat(wide_element<T>(from + converted * bytes_of(from_type))); });
  throw FileError(file, "has an element that the wanted type cannot hold",
                  concat("element ", first + converted, " is ", element, ", wanted ", to_string(to_type)),
                  "Read it as its stored type");
}

DIST_INLINE void reverse_bytes(std::span<std::byte> elements, std::size_t size) {
  const auto reverse = [&]<std::size_t bytes>() {
    for (std::byte* element = elements.data(); element != elements.data() + elements.size(); element += bytes)
      std::reverse(element, element + bytes);
  };
  if (size == 2) reverse.template operator()<2>();
  if (size == 4) reverse.template operator()<4>();
  if (size == 8) reverse.template operator()<8>();
}

DIST_INLINE std::size_t fill_elements(AnySource source, ElementType stored, std::endian order, ElementType wanted,
                                      ConvertRead convert, std::span<std::byte> to, std::size_t first) {
  const std::size_t size = bytes_of(stored);
  const auto fill = [&](std::span<std::byte> part) {
    const std::size_t bytes = read_full(source, part);
    if (order != std::endian::native) reverse_bytes(part.first(bytes / size * size), size);
    return bytes;
  };
  if (stored == wanted) {
    const std::size_t bytes = fill(to);
    if (stored == ElementType::boolean)  // a stored bool may have any value
      for (std::byte& element : to.first(bytes)) element = std::byte{element != std::byte{0}};
    return bytes;
  }
  const std::size_t total = to.size() / bytes_of(wanted);
  AlignedBuffer<std::byte> buffer(std::min(total, std::size_t{1} << 14) * size);
  std::size_t bytes = 0;
  for (std::size_t filled = 0; filled < total;) {
    const std::span<std::byte> part{buffer.data(), std::min(buffer.size(), (total - filled) * size)};
    const std::size_t count = fill(part);
    bytes += count;
    if (count < part.size()) break;
    const std::size_t elements = count / size;
    convert(source.name(), first + filled, stored, part.data(), wanted, to.data() + filled * bytes_of(wanted),
            elements);
    filled += elements;
  }
  return bytes;
}

DIST_INLINE AlignedBuffer<std::byte> read_elements(AnySource source, ElementType stored, const Shape& shape,
                                                   std::endian order, ElementType wanted, ConvertRead convert) {
  constexpr std::size_t first_capacity = std::size_t{1} << 16;
  constexpr const char* fetch_again = "Download or copy the file again";

  const std::size_t total = shape.elements();
  const auto announced = [&] {
    return concat("its header announces shape ", to_string(shape), ", ", total * bytes_of(stored),
                  " bytes of elements, but ");
  };
  std::size_t capacity = std::min(total, first_capacity);
  AlignedBuffer<std::byte> elements(capacity * bytes_of(wanted));
  for (std::size_t filled = 0; filled < total; filled = capacity) {
    if (filled == capacity) {
      capacity = std::min(total, 2 * filled);
      AlignedBuffer<std::byte> larger(capacity * bytes_of(wanted));
      std::copy_n(elements.data(), elements.size(), larger.data());
      elements = std::move(larger);
    }
    const std::span<std::byte> room = std::span{elements.data(), elements.size()}.subspan(filled * bytes_of(wanted));
    const std::size_t bytes = fill_elements(source, stored, order, wanted, convert, room, filled);
    if (bytes < (capacity - filled) * bytes_of(stored))
      throw FileError(source.name(), "is truncated", concat(announced(), filled * bytes_of(stored) + bytes, " follow"),
                      fetch_again);
  }
  std::byte extra[1];
  if (source.read(extra) != 0)
    throw FileError(source.name(), "has bytes after its elements", concat(announced(), "more follow"), fetch_again);
  return elements;
}

DIST_INLINE AnyTensor::AnyTensor(ElementType element, const Shape& extents, AlignedBuffer<std::byte> elements)
    : type(element), shape(extents) {
  auto kept = std::make_shared<const AlignedBuffer<std::byte>>(std::move(elements));
  bytes = {kept->data(), shape.elements() * bytes_of(type)};
  owner = std::move(kept);
}

}  // namespace dist::io::detail
