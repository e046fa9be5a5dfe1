#pragma once

#include <bit>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/file.hpp>
#include <dist/io/json.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/safetensors.hpp>

namespace dist::io::detail {

DIST_INLINE std::string safetensors_dtype(ElementType type) {
  std::string name{to_string(type)};
  for (char& letter : name)
    if (letter >= 'a') letter = static_cast<char>(letter - 'a' + 'A');
  return name;
}

/// Returns the bits of an element of this type, or nothing if the format lacks it.
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

/// Parses the header of a file into entries in the order of their bytes.
class SafetensorsHeaderReader {
 public:
  SafetensorsHeaderReader(std::string_view file, std::string_view written, std::uint64_t data_bytes)
      : file_(file), written_(written), data_bytes_(data_bytes) {}

  void read(std::vector<SafetensorsEntry>& entries, std::map<std::string, std::string>& metadata) const {
    const auto refuse_json = [&](std::string_view why) { refuse("its header cannot be parsed as JSON: ", why); };
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
    throw FileError(file_, "is not a valid safetensors file", concat(why...), "Download or copy the file again");
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
      refuse(quoted(name),
             " does not consist of dtype (a string), shape (an array) and data_offsets (an array of two)");
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = string_in(dtype);
    for (const ElementType type : all_element_types)
      if (safetensors_dtype(type) == entry.dtype) entry.type = type;
    entry.shape = read_shape(name, shape);
    entry.offset = number(name, json_array_get(offsets, 0));
    const std::uint64_t end = number(name, json_array_get(offsets, 1));
    if (end < entry.offset || end > data_bytes_)
      refuse(quoted(name), " has the data_offsets ", entry.offset, " to ", end, ", but the number of data bytes is ",
             data_bytes_);
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
    constexpr std::size_t most = std::size_t{1} << 57;  // the number of bits must not overflow
    if (const std::size_t axis = axis_beyond(all, most); axis < rank)
      refuse(quoted(name), " has extents whose product, up to axis ", axis, ", is more than ", most);
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
      refuse(quoted(entry.name), " has ", entry.bytes, " bytes, but needs ", needed / 8,
             needed % 8 != 0 ? " and a part" : "", " for its shape ", to_string(entry.shape), " and dtype ",
             entry.dtype);
  }

  /// Sorts the entries, and checks that they cover each byte once.
  void check_places(std::vector<SafetensorsEntry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
    });
    const std::uint64_t start = safetensors_length_bytes + written_.size();
    std::uint64_t place = 0;
    for (SafetensorsEntry& entry : entries) {
      if (entry.offset != place)
        refuse("the bytes of ", quoted(entry.name), " begin at ", entry.offset,
               ", but the bytes of the previous tensor end at ", place);
      place += entry.bytes;
      entry.offset += start;
    }
    if (place != data_bytes_)
      refuse("its tensors end at byte ", place, " after the header, but ", data_bytes_, " bytes follow it");
  }

  std::string_view file_;
  std::string_view written_;
  std::uint64_t data_bytes_;
};

[[noreturn]] inline void refuse_safetensors(const std::string& file, std::string_view why) {
  throw FileError(file, "is not a valid safetensors file", why,
                  "Give a file that safetensors wrote, or download or copy it again");
}

DIST_INLINE SafetensorsHeader read_safetensors_header(AnyRandomAccess file, std::size_t max_header_bytes) {
  const auto refuse = [&](std::string_view why) { refuse_safetensors(file.name(), why); };
  std::byte length_bytes[safetensors_length_bytes];
  if (file.read_at(0, length_bytes) < sizeof length_bytes)
    refuse(concat("it has ", file.size(), " bytes, but the length of its header alone has ", sizeof length_bytes));
  const auto length = load_little_endian<std::uint64_t>(length_bytes);
  const std::uint64_t rest = file.size() - sizeof length_bytes;
  if (length > rest || length > max_header_bytes)
    refuse(length > rest ? concat("it announces a header of ", length, " bytes, but ", rest, " follow")
                         : concat("its header has ", length, " bytes, at most ", max_header_bytes, " are read"));
  std::string written(static_cast<std::size_t>(length), '\0');
  if (file.read_at(sizeof length_bytes, std::as_writable_bytes(std::span<char>{written.data(), written.size()})) <
      length)
    refuse("it became shorter while it was read");
  SafetensorsHeader header;
  SafetensorsHeaderReader{file.name(), written, rest - length}.read(header.entries, header.metadata);
  for (std::size_t i = 0; i < header.entries.size(); ++i) header.by_name.push_back(i);
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](std::size_t a, std::size_t b) { return header.entries[a].name < header.entries[b].name; });
  return header;
}

DIST_INLINE const SafetensorsEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name.begin(), by_name.end(), name,
      [&](std::size_t i, std::string_view wanted) { return std::string_view{entries[i].name} < wanted; });
  return found == by_name.end() || entries[*found].name != name ? nullptr : &entries[*found];
}

DIST_INLINE const SafetensorsEntry& SafetensorsHeader::entry(const std::string& file, std::string_view name) const {
  if (const SafetensorsEntry* const found = find(name)) return *found;
  std::vector<std::string> names;
  for (const SafetensorsEntry& each : entries) names.push_back(each.name);
  throw FileError(file, concat("has no tensor ", quoted(name)), listed_names(names), "Use one of its names");
}

DIST_INLINE void read_safetensors(AnyRandomAccess file, const SafetensorsEntry& entry, ElementType wanted,
                                  ConvertRead convert, std::span<std::byte> to) {
  if (convert == nullptr && entry.type != wanted)
    throw FileError(file.name(), concat("has a tensor of another type: ", quoted(entry.name)),
                    concat("its elements are ", entry.dtype, ", wanted ", safetensors_dtype(wanted)),
                    "Read it as its stored type, or with conversion");
  if (!entry.type)
    throw FileError(file.name(), concat("has a tensor of a type that cannot be converted: ", quoted(entry.name)),
                    concat("its elements are ", entry.dtype), "Save it as another type, such as F32");
  if (const std::size_t count = to.size() / bytes_of(wanted); count != entry.shape.elements())
    throw FileError(file.name(), concat("has a tensor of another shape: ", quoted(entry.name)),
                    concat("its shape is ", to_string(entry.shape), ", wanted ", count, " elements"),
                    "Load it into an object of that shape");
  RangeSource<AnyRandomAccess> source{file, entry.offset, entry.bytes, concat(file.name(), ":", entry.name)};
  if (fill_elements(source, *entry.type, std::endian::little, wanted, convert, to, 0) < entry.bytes)
    refuse_safetensors(file.name(), "it became shorter while it was read");
}

}  // namespace dist::io::detail
