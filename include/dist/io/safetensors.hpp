/// Reads safetensors files: the length of the header (64 bits, little-endian), the header in JSON, which says the type, the
/// shape and the place of each tensor, then the elements, little-endian and row by row.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/file.hpp>
#include <dist/io/json.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/random_access.hpp>

namespace dist::io {

/// The longest header that the format has.
inline constexpr std::size_t safetensors_max_header_bytes = 100'000'000;

/// A tensor of a file, as the header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;                // in the format's notation, such as "F32"
  std::optional<ElementType> type;  // none for types that the format has and this library has not, such as "F8_E4M3"
  Shape shape;
  std::uint64_t offset = 0;  // of its bytes, from the beginning of the file
  std::uint64_t bytes = 0;
};

namespace detail {

inline constexpr std::size_t safetensors_length_bytes = 8;
inline constexpr const char* safetensors_metadata_key = "__metadata__";

/// The format's name of a type: "BF16".
[[nodiscard]] inline std::string safetensors_dtype(ElementType type) {
  std::string name{to_string(type)};
  for (char& letter : name)
    if (letter >= 'a') letter = static_cast<char>(letter - 'a' + 'A');
  return name;
}

/// The bits of an element of that type, none where the format has no such type.
[[nodiscard]] inline std::optional<std::size_t> safetensors_bits(std::string_view dtype,
                                                                 std::optional<ElementType> type) {
  if (type) return 8 * bytes_of(*type);
  for (const std::string_view name : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
    if (dtype == name) return 8;
  for (const std::string_view name : {"F6_E2M3", "F6_E3M2"})
    if (dtype == name) return 6;
  if (dtype == "F4") return 4;
  if (dtype == "C64") return 64;
  return std::nullopt;
}

/// Turns the header of a file, and the number of bytes behind it, into entries in the order of their bytes.
class SafetensorsHeaderReader {
 public:
  SafetensorsHeaderReader(std::string_view file, std::string_view written, std::uint64_t data_bytes)
      : file_(file), written_(written), data_bytes_(data_bytes) {}

  void read(std::vector<SafetensorsEntry>& entries, std::map<std::string, std::string>& metadata) const {
    const auto refuse_json = [&](std::string_view why) { refuse("its header is not JSON that can be read: ", why); };
    if (!written_.starts_with('{')) refuse_json("it does not begin with '{'");
    const Json json = parse_json(written_, written_.size(), refuse_json);
    if (written_.substr(0, written_.find_last_not_of(' ') + 1).back() != '}')
      refuse_json("something other than spaces follows it");
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(json.get(), key, value) {
      if (std::string_view{key} == safetensors_metadata_key)
        read_metadata(value, metadata);
      else
        entries.push_back(read_entry(key, value));
    }
    check_places(entries);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... why) const {
    throw FileError(file_, "is no sound safetensors file", concat(why...), "Download or copy the file again");
  }

  void read_metadata(const json_t* json, std::map<std::string, std::string>& metadata) const {
    if (!json_is_object(json)) refuse("its ", safetensors_metadata_key, " is ", kind_of(json), ", not an object");
    const char* key = nullptr;
    const json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(json), key, value) {
      if (!json_is_string(value))
        refuse("its ", safetensors_metadata_key, " has ", kind_of(value), " for ", quoted(key), ", not a string");
      metadata.emplace(key, string_in(value));
    }
  }

  [[nodiscard]] SafetensorsEntry read_entry(const char* name, const json_t* json) const {
    constexpr std::size_t members = 3;
    if (!json_is_object(json)) refuse(quoted(name), " is ", kind_of(json), ", not an object");
    const json_t* const dtype = json_object_get(json, "dtype");
    const json_t* const shape = json_object_get(json, "shape");
    const json_t* const offsets = json_object_get(json, "data_offsets");
    if (!json_is_string(dtype) || !json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2 ||
        json_object_size(json) != members)
      refuse(quoted(name), " does not consist of dtype, a string, shape, an array, and data_offsets, an array of two");
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = string_in(dtype);
    for (const ElementType type : all_element_types)
      if (safetensors_dtype(type) == entry.dtype) entry.type = type;
    entry.shape = read_shape(name, shape);
    entry.offset = number(name, json_array_get(offsets, 0));
    const std::uint64_t end = number(name, json_array_get(offsets, 1));
    if (end < entry.offset || end > data_bytes_)
      refuse(quoted(name), " has its bytes from ", entry.offset, " to ", end, ", of ", data_bytes_);
    entry.bytes = end - entry.offset;
    check_bytes(entry);
    return entry;
  }

  [[nodiscard]] Shape read_shape(const char* name, const json_t* json) const {
    const std::size_t rank = json_array_size(json);
    std::size_t extents[Shape::max_rank];
    if (rank > Shape::max_rank)
      throw FileError(file_, concat("has a tensor of a rank that cannot be read: ", quoted(name)),
                      concat(rank, " axes, at most ", Shape::max_rank), "Save it with fewer axes");
    for (std::size_t axis = 0; axis < rank; ++axis)
      extents[axis] = static_cast<std::size_t>(number(name, json_array_get(json, axis)));
    const std::span<const std::size_t> all{extents, rank};
    constexpr std::size_t most = std::size_t{1} << 57;  // whose bits can be counted
    if (const std::size_t axis = axis_beyond(all, most); axis < rank)
      refuse(quoted(name), " has extents that multiply, up to axis ", axis, ", to more than ", most);
    return Shape{all};
  }

  [[nodiscard]] std::uint64_t number(const char* name, const json_t* json) const {
    if (!json_is_integer(json) || json_integer_value(json) < 0)
      refuse(quoted(name), " has ", json_is_integer(json) ? "a negative number" : kind_of(json),
             " in its shape or data_offsets where a count was expected");
    return static_cast<std::uint64_t>(json_integer_value(json));
  }

  void check_bytes(const SafetensorsEntry& entry) const {
    const std::optional<std::size_t> bits = safetensors_bits(entry.dtype, entry.type);
    if (!bits)
      throw FileError(file_, concat("has a tensor of an unknown type: ", quoted(entry.name)),
                      concat("its dtype is ", quoted(entry.dtype)), "Save it as another type, such as F32");
    const std::uint64_t needed = *bits * entry.shape.elements();
    if (needed % 8 != 0 || needed / 8 != entry.bytes)
      refuse(quoted(entry.name), " has ", entry.bytes, " bytes, but ", needed / 8, needed % 8 != 0 ? " and a part" : "",
             " by its shape ", to_string(entry.shape), " and dtype ", entry.dtype);
  }

  /// Puts the entries in order. Each byte belongs to one of them.
  void check_places(std::vector<SafetensorsEntry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
    });
    const std::uint64_t start = safetensors_length_bytes + written_.size();
    std::uint64_t place = 0;
    for (SafetensorsEntry& entry : entries) {
      if (entry.offset != place)
        refuse("the bytes of ", quoted(entry.name), " begin at ", entry.offset, ", but those before end at ", place);
      place += entry.bytes;
      entry.offset += start;
    }
    if (place != data_bytes_)
      refuse("its tensors end at byte ", place, " behind the header, but ", data_bytes_, " are there");
  }

  std::string_view file_;
  std::string_view written_;
  std::uint64_t data_bytes_;
};

}  // namespace detail

/// The tensors of a safetensors file by name:
///
///     const dist::io::Safetensors weights{"model.safetensors"};
///     const dist::Tensor<float> kernel = weights.read_converted<float>("dense_1/kernel");
///
/// Only the header is read at first. It is trusted in nothing: every byte behind it belongs to one tensor, whose type and
/// shape take so many.
template <RandomAccess R = RandomAccessFile>
class Safetensors {
 public:
  /// Throws FileError when the file is missing, not a sound safetensors file, or has a header of more than
  /// `max_header_bytes`. While a header is read it takes up to eighty times its bytes, if somebody wrote it for that; twenty
  /// otherwise. Strangers' files of some thousands of tensors need no more than a megabyte.
  explicit Safetensors(std::string path, std::size_t max_header_bytes = safetensors_max_header_bytes)
      : Safetensors(R(std::move(path)), max_header_bytes) {}
  explicit Safetensors(R file, std::size_t max_header_bytes = safetensors_max_header_bytes) : file_(std::move(file)) {
    std::byte length_bytes[detail::safetensors_length_bytes];
    if (file_.read_at(0, length_bytes) < sizeof length_bytes)
      refuse(concat("it has ", file_.size(), " bytes, the length of its header alone has ", sizeof length_bytes));
    const auto length = load_little_endian<std::uint64_t>(length_bytes);
    const std::uint64_t rest = file_.size() - sizeof length_bytes;
    if (length > rest || length > max_header_bytes)
      refuse(length > rest ? concat("it announces a header of ", length, " bytes, but ", rest, " follow")
                           : concat("its header has ", length, " bytes, at most ", max_header_bytes, " are read"));
    std::string header(static_cast<std::size_t>(length), '\0');
    if (file_.read_at(sizeof length_bytes, std::as_writable_bytes(std::span<char>{header.data(), header.size()})) <
        length)
      refuse("it became shorter while it was read");
    detail::SafetensorsHeaderReader{name(), header, rest - length}.read(entries_, metadata_);
    for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.push_back(i);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::size_t a, std::size_t b) { return entries_[a].name < entries_[b].name; });
  }

  /// The tensors, in the order of their bytes.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  /// The texts that the file carries beside its tensors.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

  /// The tensor of that name; nullptr if there is none.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const {
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [&](std::size_t i, std::string_view wanted) { return std::string_view{entries_[i].name} < wanted; });
    return found == by_name_.end() || entries_[*found].name != name ? nullptr : &entries_[*found];
  }
  /// The tensor of that name. Throws FileError, which lists the first ten names, if there is none.
  [[nodiscard]] const SafetensorsEntry& entry(std::string_view name) const {
    if (const SafetensorsEntry* const found = find(name)) return *found;
    std::vector<std::string> names;
    for (const SafetensorsEntry& each : entries_) names.push_back(each.name);
    throw FileError(this->name(), concat("has no tensor ", quoted(name)), listed_names(names), "Use one of its names");
  }

  /// The bytes of a tensor, little-endian, in the order of the file. The file must outlive the source, and stay where it is.
  [[nodiscard]] RangeSource<R> open(const SafetensorsEntry& entry) const {
    return {file_, entry.offset, entry.bytes, concat(name(), ":", entry.name)};
  }

  /// Reads the tensor of that name. Throws FileError as `entry` does, and when it is of another type.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view name) const {
    Tensor<T> tensor{entry(name).shape};
    read(name, tensor.elements());
    return tensor;
  }
  /// The same into `to`, which throws FileError also where `to` has not so many elements.
  template <class T>
  void read(std::string_view name, std::span<T> to) const {
    const SafetensorsEntry& found = entry(name);
    if (found.type != element_type<T>)
      throw FileError(this->name(), concat("has a tensor of another type: ", quoted(name)),
                      concat("its elements are ", found.dtype, ", wanted ", detail::safetensors_dtype(element_type<T>)),
                      "Read it as the type that it holds, or converted");
    fill<T>(found, to);
  }

  /// Reads the tensor of that name, of any type, whose elements are converted to `T` as `convert_elements` says. Throws
  /// FileError as `entry` does, for the types that this library has not, and where an element has no number of type `T`.
  template <class T>
  [[nodiscard]] Tensor<T> read_converted(std::string_view name) const {
    Tensor<T> tensor{entry(name).shape};
    read_converted(name, tensor.elements());
    return tensor;
  }
  /// The same into `to`, which throws FileError also where `to` has not so many elements.
  template <class T>
  void read_converted(std::string_view name, std::span<T> to) const {
    const SafetensorsEntry& found = entry(name);
    if (!found.type)
      throw FileError(this->name(), concat("has a tensor of a type that cannot be converted: ", quoted(name)),
                      concat("its elements are ", found.dtype), "Save it as another type, such as F32");
    with_element_type(*found.type, [&]<class Stored>() { fill<Stored>(found, to); });
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw FileError(name(), "is no sound safetensors file", why,
                    "Give a file that safetensors wrote, or download or copy it again");
  }

  template <class Stored, class T>
  void fill(const SafetensorsEntry& found, std::span<T> to) const {
    if (to.size() != found.shape.elements())
      throw FileError(name(), concat("has a tensor of another shape: ", quoted(found.name)),
                      concat("its shape is ", to_string(found.shape), ", wanted ", to.size(), " elements"),
                      "Load it into what has that shape");
    RangeSource<R> source = open(found);
    if (detail::fill_elements<Stored>(source, std::endian::little, to, 0) < found.bytes)
      refuse("it became shorter while it was read");
  }

  R file_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};
Safetensors(std::string, std::size_t = 0)->Safetensors<RandomAccessFile>;
Safetensors(const char*, std::size_t = 0)->Safetensors<RandomAccessFile>;
template <RandomAccess R>
Safetensors(R, std::size_t = 0) -> Safetensors<R>;

}  // namespace dist::io
