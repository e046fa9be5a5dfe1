/// Serialization of values for another process of the same program, such as arguments of remote functions. Numbers keep
/// their memory representation; lists and texts follow their lengths. Types are not encoded: writer and reader must
/// name the same type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/short_list.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/rpc/rpc.hpp>

namespace dist {

/// Error for bytes that do not hold a value of the requested type.
class ArchiveError : public Error {
 public:
  using Error::Error;
};

class ArchiveWriter;
class ArchiveReader;

/// A type with its own serialization: `write_to(archive)` writes at least one byte; `read_from(archive)` rebuilds the
/// value, and throws ArchiveError for invalid bytes.
template <class T>
concept ArchivesItself = requires(const T& value, ArchiveWriter& writer, ArchiveReader& reader) {
  value.write_to(writer);
  { T::read_from(reader) } -> std::same_as<T>;
};

namespace detail {

/// Limit on nested lists. Without it, a message could overflow the reader's stack.
inline constexpr std::size_t deepest_list = 64;

/// Numbers copied byte by byte; not bool, which has invalid byte values.
template <class T>
concept PlainNumber = Number<T> && sizeof(T) <= 8;
template <class T>
inline constexpr bool is_plain = PlainNumber<T>;
template <class T, std::size_t size>
inline constexpr bool is_plain<std::array<T, size>> = size != 0 && is_plain<T>;

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;
template <class T>
inline constexpr bool is_view_of_tensor = false;
template <class T, class Where>
inline constexpr bool is_view_of_tensor<TensorView<T, Where>> = true;

template <class T>
concept RefersToText = is_specialization<T, std::basic_string_view>;
template <class T>
concept ShowsMemory = is_span<T> || is_view_of_tensor<T> || is_specialization<T, IndexedSlicesView> ||
    is_specialization<T, std::initializer_list>;
template <class T>
concept PointsElsewhere = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
    std::is_function_v<T> || std::is_array_v<T> || is_specialization<T, std::unique_ptr> ||
    is_specialization<T, std::shared_ptr> || is_specialization<T, std::weak_ptr>;
/// A type that is sent as parts: `parts()` returns a std::tuple of references to them, and the static function
/// `of_parts` rebuilds the value.
template <class T>
concept MadeOfParts = requires(const T& value) {
  value.parts();
  &T::of_parts;
};
template <class... Parts>
std::tuple<std::remove_cvref_t<Parts>...> values_of_parts(const std::tuple<Parts...>&);
template <class T>
using PartsOf = decltype(values_of_parts(std::declval<const T&>().parts()));

/// Marker among the `Outer` types of `sending_of` that allows string views, whose texts the receiver keeps.
struct WithTexts {};

/// An enum in which every value of the underlying type is valid.
template <class T>
concept FixedEnum = std::is_enum_v<T> && requires {
  T{std::underlying_type_t<T>{}};
};
/// A type without state, such as a lambda without captures.
template <class T>
concept EmptyValue = std::is_empty_v<T> && std::default_initializable<T> && std::copyable<T>;

template <class T>
using MembersOf = decltype(members_of(std::declval<T&>()));

template <class T>
[[nodiscard]] constexpr std::size_t least_bytes() {
  if constexpr (ArchivesItself<T> || is_optional<T>) {
    return 1;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || is_plain<T>) {
    return sizeof(T);
  } else if constexpr (EmptyValue<T> && !Structure<T>) {
    return 0;
  } else if constexpr (MadeOfParts<T>) {
    return least_bytes<PartsOf<T>>();
  } else if constexpr (Structure<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<std::tuple_element_t<I, T>>>());
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (Aggregate<T>) {
    return []<class... Members>(const std::tuple<Members&...>*) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<Members>>());
    }(static_cast<MembersOf<T>*>(nullptr));
  } else {
    return sizeof(std::uint64_t);
  }
}

enum class Sending { possible, pointer, reference, text_view, view, open_enum, empty_elements, unknown };

/// Returns whether values of type `T` can be sent, or the reason why not. `Outer` are the enclosing types, for
/// recursive lists.
template <class T, class... Outer>
[[nodiscard]] constexpr Sending sending_of() {
  constexpr auto first_culprit = [](auto... of_parts) {
    Sending culprit = Sending::possible;
    static_cast<void>(((culprit == Sending::possible ? culprit = of_parts : culprit), ...));
    return culprit;
  };
  if constexpr ((std::same_as<T, Outer> || ...)) {
    return Sending::possible;
  } else if constexpr (std::is_reference_v<T> || is_specialization<T, std::reference_wrapper>) {
    return Sending::reference;
  } else if constexpr (PointsElsewhere<T>) {
    return Sending::pointer;
  } else if constexpr (RefersToText<T>) {
    return (std::same_as<WithTexts, Outer> || ...) ? Sending::possible : Sending::text_view;
  } else if constexpr (ShowsMemory<T>) {
    return Sending::view;
  } else if constexpr (std::is_enum_v<T>) {
    return FixedEnum<T> ? Sending::possible : Sending::open_enum;
  } else if constexpr (ArchivesItself<T> || is_plain<T> || std::same_as<T, bool> || std::same_as<T, std::string> ||
                       std::same_as<T, Shape> || (EmptyValue<T> && !Structure<T>)) {
    return Sending::possible;
  } else if constexpr (MadeOfParts<T>) {
    return sending_of<PartsOf<T>, T, Outer...>();
  } else if constexpr (is_specialization<T, std::vector>) {
    constexpr Sending element = sending_of<typename T::value_type, T, Outer...>();
    if constexpr (element != Sending::possible)
      return element;
    else
      return least_bytes<typename T::value_type>() > 0 ? element : Sending::empty_elements;
  } else if constexpr (is_specialization<T, Tensor> || is_specialization<T, IndexedSlices>) {
    return sending_of<typename T::Element, T, Outer...>();
  } else if constexpr (is_optional<T>) {
    return sending_of<std::remove_cv_t<typename T::value_type>, T, Outer...>();
  } else if constexpr (Structure<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return first_culprit(sending_of<std::remove_cv_t<std::tuple_element_t<I, T>>, T, Outer...>()...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (Aggregate<T>) {
    constexpr Sending members = [&]<class... Members>(const std::tuple<Members&...>*) {
      return first_culprit(sending_of<std::remove_cv_t<Members>, T, Outer...>()...);
    }(static_cast<MembersOf<T>*>(nullptr));
    // A reference member has the type of its target here, but makes the struct non-assignable.
    return members == Sending::possible && !std::is_move_assignable_v<T> ? Sending::reference : members;
  } else {
    return Sending::unknown;
  }
}

/// Fails to compile with an explanation if values of the type cannot be sent.
template <class T, class... Outer>
[[nodiscard]] constexpr bool require_sendable() {
  constexpr Sending sending = sending_of<T, Outer...>();
  static_assert(sending != Sending::pointer,
                "a pointer cannot be sent, because its target is in this process: send the value itself, a std::string "
                "for text, dist::function<f> for a function");
  static_assert(sending != Sending::reference,
                "a reference cannot be sent, because its target is in this process: send the value itself");
  static_assert(sending != Sending::text_view,
                "a std::string_view cannot be sent, because its text is in this process: send a std::string");
  static_assert(sending != Sending::view,
                "a span or a view cannot be sent, because its elements are in this process: send a std::vector, a "
                "dist::Tensor or a dist::IndexedSlices");
  static_assert(sending != Sending::open_enum,
                "an enum without a fixed type cannot be sent, because not every number is one of its values: write "
                "enum class, or give the underlying type, as in enum Name : int");
  static_assert(sending != Sending::empty_elements,
                "a list of values without any bytes cannot be sent: send the number of these values");
  static_assert(sending != Sending::unknown,
                "a value of this type cannot be sent: send numbers, enums, std::string, std::vector, std::array, "
                "std::tuple, std::pair, std::optional, dist::Tensor, dist::IndexedSlices, plain structs of up to 8 of "
                "these, or a type that has write_to and read_from");
  return sending == Sending::possible;
}

[[noreturn]] void refuse_deep_lists();
[[noreturn]] void refuse_short_archive(std::string_view what, std::string_view type, std::uint64_t wanted,
                                       std::uint64_t left);
[[noreturn]] void refuse_long_list(std::string_view what, std::string_view type, std::uint64_t elements,
                                   std::uint64_t left);
[[noreturn]] void refuse_long_archive(std::string_view what, std::uint64_t left);
[[noreturn]] void refuse_value(std::string_view what, std::string_view type, std::string_view why);

}  // namespace detail

/// A type whose values can be sent to another process: numbers, enums, texts, tensors, and lists, tuples and plain
/// structs of these.
template <class T>
concept Sendable = detail::sending_of<T>()
== detail::Sending::possible;

/// Owns the texts of string views that were read from an archive.
using ArchivedTexts = std::vector<std::unique_ptr<const std::string>>;

/// Appends values to a byte buffer.
class ArchiveWriter {
 public:
  /// Appends a value. Throws InvalidArgument if lists are nested more than 64 deep.
  template <class T>
  ArchiveWriter& put(const T& value) {
    if constexpr (detail::require_sendable<T>()) write(value);
    return *this;
  }
  /// Appends a value that may contain std::string_view.
  template <class T>
  ArchiveWriter& put_with_texts(const T& value) {
    if constexpr (detail::require_sendable<T, detail::WithTexts>()) write(value);
    return *this;
  }
  /// Appends raw bytes without their length.
  ArchiveWriter& put_bytes(const void* bytes, std::size_t size);

  /// The bytes written since the last `take`, valid until the next call.
  [[nodiscard]] std::span<const std::byte> content() const noexcept { return content_; }
  /// Returns the written bytes, and empties the writer.
  [[nodiscard]] std::vector<std::byte> take() { return content_.take(); }

 private:
  template <class T>
  void write(const T& value) {
    if constexpr (ArchivesItself<T>) {
      value.write_to(*this);
    } else if constexpr (detail::is_plain<T>) {
      put_bytes(&value, sizeof value);
    } else if constexpr (std::same_as<T, bool>) {
      write(static_cast<std::uint8_t>(value ? 1 : 0));
    } else if constexpr (std::is_enum_v<T>) {
      write(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
      write_list(value.data(), value.size());
    } else if constexpr (detail::MadeOfParts<T>) {
      std::apply([&](const auto&... part) { (write(part), ...); }, value.parts());
    } else if constexpr (std::same_as<T, Shape>) {
      write_list(value.extents().data(), value.rank());
    } else if constexpr (detail::is_specialization<T, Tensor>) {
      write(value.shape());
      write_elements(value.data(), value.size());
    } else if constexpr (detail::is_specialization<T, IndexedSlices>) {
      write(value.dense_shape());
      write_list(value.indices().data(), value.rows());
      write_elements(value.values().data(), value.values().size());
    } else if constexpr (detail::is_specialization<T, std::vector>) {
      if (++depth_ > detail::deepest_list) detail::refuse_deep_lists();
      if constexpr (std::same_as<typename T::value_type, bool>) {
        write(static_cast<std::uint64_t>(value.size()));
        for (const bool element : value) write(element);
      } else {
        write_list(value.data(), value.size());
      }
      --depth_;
    } else if constexpr (detail::is_optional<T>) {
      write(value.has_value());
      if (value) write(*value);
    } else if constexpr (!detail::EmptyValue<T> || Structure<T>) {
      for_each_member(value, [&](const auto& member) { write(member); });
    }
  }
  template <class E>
  void write_elements(const E* elements, std::size_t count) {
    if constexpr (detail::is_plain<E>) {
      if (count > 0) put_bytes(elements, count * sizeof(E));
    } else {
      for (std::size_t i = 0; i < count; ++i) write(elements[i]);
    }
  }
  template <class E>
  void write_list(const E* elements, std::size_t count) {
    write(static_cast<std::uint64_t>(count));
    write_elements(elements, count);
  }

  detail::ShortList<std::byte, 128> content_;
  std::size_t depth_ = 0;  ///< nesting depth
};

/// Reads values in the order in which they were written, from bytes that may be malformed: lengths are checked against
/// the remaining bytes before memory is allocated, and invalid values throw ArchiveError. The bytes must outlive the
/// reader.
class ArchiveReader {
 public:
  /// `what` names the bytes in messages, as in "The arguments of a function". It must outlive the reader.
  explicit ArchiveReader(rpc::ChunkSpan pieces, std::string_view what = "A message")
      : pieces_(pieces), left_(rpc::size_of(pieces)), what_(what) {}
  /// Reads bytes that are in one piece.
  explicit ArchiveReader(rpc::Chunk piece, std::string_view what = "A message")
      : piece_(piece), left_(piece.size()), what_(what) {}

  /// Reads a value. Throws ArchiveError if the bytes are invalid.
  template <class T>
  [[nodiscard]] T get() {
    if constexpr (detail::require_sendable<T>())
      return read<T>();
    else
      return detail::refused<T>();
  }

  /// Reads a value that may contain std::string_view. `texts` owns the texts.
  template <class T>
  [[nodiscard]] T get_with_texts(ArchivedTexts& texts) {
    texts_ = &texts;
    if constexpr (detail::require_sendable<T, detail::WithTexts>())
      return read<T>();
    else
      return detail::refused<T>();
  }

  /// Copies the next bytes to `to`. Messages call them `type`. Throws ArchiveError if too few are left.
  void get_bytes(std::span<std::byte> to, std::string_view type = "bytes");
  /// Returns the next bytes without copying. Throws ArchiveError if too few are left.
  [[nodiscard]] rpc::ChunkList get_pieces(std::uint64_t size);

  /// The number of bytes that are not read yet.
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }
  /// Throws ArchiveError if bytes are left.
  void expect_end() const {
    if (left_ > 0) detail::refuse_long_archive(what_, left_);
  }

 private:
  template <class T>
  [[nodiscard]] T read() {
    if constexpr (ArchivesItself<T>) {
      return T::read_from(*this);
    } else if constexpr (detail::is_plain<T>) {
      constexpr std::string_view type = detail::type_name<T>();
      T value{};
      get_bytes(std::as_writable_bytes(std::span{&value, 1}), type);
      return value;
    } else if constexpr (std::same_as<T, bool>) {
      const auto byte = read<std::uint8_t>();
      if (byte > 1) detail::refuse_value(what_, "bool", concat("the byte ", byte));
      return byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(read<std::underlying_type_t<T>>());
    } else if constexpr (std::same_as<T, std::string>) {
      std::string value(list_length<char>("std::string"), '\0');
      read_elements(value.data(), value.size());
      return value;
    } else if constexpr (std::same_as<T, std::string_view>) {
      return keep_text(read<std::string>());
    } else if constexpr (detail::MadeOfParts<T>) {
      auto parts = read<detail::PartsOf<T>>();
      return std::apply([](auto&... part) { return T::of_parts(std::move(part)...); }, parts);
    } else if constexpr (std::same_as<T, Shape>) {
      return read_shape();
    } else if constexpr (detail::is_specialization<T, Tensor>) {
      return read_tensor<typename T::Element>(read_shape());
    } else if constexpr (detail::is_specialization<T, IndexedSlices>) {
      return read_slices<T>();
    } else if constexpr (detail::is_specialization<T, std::vector>) {
      return read_vector<T>();
    } else if constexpr (detail::is_optional<T>) {
      if (!read<bool>()) return std::nullopt;
      return T{std::in_place, read<std::remove_cv_t<typename T::value_type>>()};
    } else if constexpr (detail::EmptyValue<T> && !Structure<T>) {
      return T{};
    } else if constexpr (detail::is_array<T>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return T{(static_cast<void>(I), read<typename T::value_type>())...};  // braces fix the order of evaluation
      }
      (std::make_index_sequence<std::tuple_size_v<T>>{});
    } else if constexpr (Structure<T>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return T{read<std::remove_cv_t<std::tuple_element_t<I, T>>>()...};
      }
      (std::make_index_sequence<std::tuple_size_v<T>>{});
    } else {
      return [&]<class... Members>(const std::tuple<Members&...>*) {
        return T{read<std::remove_cv_t<Members>>()...};
      }(static_cast<detail::MembersOf<T>*>(nullptr));
    }
  }

  /// Reads a list length, and checks it against the remaining bytes.
  template <class E>
  [[nodiscard]] std::size_t list_length(std::string_view type) {
    const auto elements = read<std::uint64_t>();
    if (elements > left_ / detail::least_bytes<E>()) detail::refuse_long_list(what_, type, elements, left_);
    return static_cast<std::size_t>(elements);
  }
  template <class E>
  void read_elements(E* elements, std::size_t count) {
    if constexpr (detail::is_plain<E>) {
      constexpr std::string_view type = detail::type_name<E>();
      get_bytes(std::as_writable_bytes(std::span{elements, count}), type);
    } else {
      for (std::size_t i = 0; i < count; ++i) elements[i] = read<E>();
    }
  }
  template <class T>
  [[nodiscard]] T read_vector() {
    using E = typename T::value_type;
    constexpr std::string_view type = detail::type_name<T>();
    const std::size_t size = list_length<E>(type);
    if constexpr (detail::is_plain<E>) {
      T values(size);
      read_elements(values.data(), size);
      return values;
    } else {
      if (++depth_ > detail::deepest_list) detail::refuse_value(what_, type, "its lists are nested too deeply");
      T values;
      // An element may need more memory than bytes, so the received bytes bound the capacity.
      values.reserve(std::min<std::uint64_t>(size, left_ / sizeof(E)));
      for (std::size_t i = 0; i < size; ++i) values.push_back(read<E>());
      --depth_;
      return values;
    }
  }
  [[nodiscard]] Shape read_shape();
  [[nodiscard]] std::string_view keep_text(std::string text);
  template <class E>
  [[nodiscard]] Tensor<E> read_tensor(const Shape& shape) {
    if (shape.elements() > left_ / sizeof(E))
      detail::refuse_long_list(what_, detail::type_name<Tensor<E>>(), shape.elements(), left_);
    Tensor<E> tensor{shape};
    read_elements(tensor.data(), tensor.size());
    return tensor;
  }
  template <class T>
  [[nodiscard]] T read_slices() {
    const Shape dense_shape = read_shape();
    const auto indices = read<std::vector<std::int64_t>>();
    try {
      const Tensor<typename T::Element> values =
          read_tensor<typename T::Element>(dense_shape.row().stacked(indices.size()));
      return T{IndexedSlicesView<typename T::Element>{indices, values, dense_shape}};
    } catch (const InvalidArgument& error) {
      detail::refuse_value(what_, "dist::IndexedSlices", error.what());
    } catch (const ShapeMismatch& error) {
      detail::refuse_value(what_, "dist::IndexedSlices", error.what());
    }
  }

  /// Returns the next contiguous bytes: at least one, at most `most`.
  [[nodiscard]] rpc::Chunk next(std::uint64_t most);

  rpc::ChunkSpan pieces_;  ///< after `piece_`
  rpc::Chunk piece_;
  std::uint64_t left_;
  std::string_view what_;
  ArchivedTexts* texts_ = nullptr;
  std::size_t depth_ = 0;  ///< nesting depth
};

/// Serializes one value.
template <class T>
[[nodiscard]] std::vector<std::byte> to_bytes(const T& value) {
  return ArchiveWriter{}.put(value).take();
}
/// Deserializes one value. Throws ArchiveError if the bytes are invalid or too long.
template <class T, class Bytes>
[[nodiscard]] T from_bytes(const Bytes& bytes, std::string_view what = "A message") {
  ArchiveReader reader{bytes, what};
  T value = reader.get<T>();
  reader.expect_end();
  return value;
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/archive.ipp>
#endif
