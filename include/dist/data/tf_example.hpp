/// Parser for serialized tf.train.Example messages, the usual content of TFRecord files: named lists of bytes, floats
/// or integers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/little_endian.hpp>

namespace dist::data {

namespace detail {

/// Reads the fields of a protobuf message in order. Skips unexpected wire types. Throws InvalidArgument if the bytes
/// are malformed.
class WireReader {
 public:
  enum class Type : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  explicit WireReader(std::string_view message) : rest_(message) {}

  /// Reads the tag of the next field. Returns false at the end. The previous value must have been read or skipped.
  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    type_ = static_cast<Type>(tag & 7);
    if (number_ == 0) refuse("a field has the number 0");
    return true;
  }
  [[nodiscard]] bool is(std::uint64_t number, Type type) const { return number_ == number && type_ == type; }

  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number has more than ten bytes");
  }
  [[nodiscard]] float fixed_float() {
    const std::string_view bytes = take(4);
    return std::bit_cast<float>(
        io::load_little_endian<std::uint32_t>(reinterpret_cast<const std::byte*>(bytes.data())));
  }
  [[nodiscard]] std::string_view bytes() { return take(varint()); }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

  void skip() {
    switch (type_) {
      case Type::varint:
        static_cast<void>(varint());
        return;
      case Type::fixed64:
        static_cast<void>(take(8));
        return;
      case Type::bytes:
        static_cast<void>(bytes());
        return;
      case Type::fixed32:
        static_cast<void>(take(4));
        return;
    }
    refuse("a field has an unknown wire type");
  }

 private:
  [[noreturn]] static void refuse(std::string_view why) {
    throw InvalidArgument("A record is not a tf.train.Example", why, "Parse records that hold serialized Examples");
  }
  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) refuse("it ends inside a field");
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
  std::uint64_t number_ = 0;
  Type type_ = Type::varint;
};

}  // namespace detail

/// The features of one tf.train.Example. Parse all records with the same object to reuse memory.
///
/// Names and bytes are views of the last parsed record.
class TfExample {
 public:
  TfExample() = default;
  /// Parses `record`. Throws InvalidArgument if it is not an Example.
  explicit TfExample(std::string_view record) { parse(record); }

  /// Replaces the features by the features of `record`. Throws InvalidArgument if it is not an Example.
  void parse(std::string_view record) {
    features_.clear();
    bytes_.clear();
    floats_.clear();
    ints_.clear();
    for (Wire example{record}; example.next();)
      if (example.is(1, Type::bytes))
        parse_features(example.bytes());
      else
        example.skip();
  }

  /// Returns the list with this name. Throws InvalidArgument if it does not exist (the message lists the names), or if
  /// it holds values of another kind. A feature without a kind is an empty list of any kind.
  [[nodiscard]] std::span<const std::string_view> bytes(std::string_view name) const {
    return list(name, Kind::bytes, bytes_);
  }
  /// Returns the numbers of a feature of floats. Throws InvalidArgument like `bytes`.
  [[nodiscard]] std::span<const float> floats(std::string_view name) const { return list(name, Kind::floats, floats_); }
  /// Returns the numbers of a feature of integers. Throws InvalidArgument like `bytes`.
  [[nodiscard]] std::span<const std::int64_t> ints(std::string_view name) const {
    return list(name, Kind::ints, ints_);
  }
  /// True if the record has a feature with that name.
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }

 private:
  using Wire = detail::WireReader;
  using Type = Wire::Type;
  enum class Kind : unsigned char { none, bytes, floats, ints };
  struct Feature {
    std::string_view name;
    Kind kind = Kind::none;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  static constexpr std::string_view name_of(Kind kind) {
    return kind == Kind::bytes ? "bytes" : kind == Kind::floats ? "floats" : "integers";
  }

  void parse_features(std::string_view message) {
    for (Wire features{message}; features.next();)
      if (features.is(1, Type::bytes))
        parse_entry(features.bytes());
      else
        features.skip();
  }

  void parse_entry(std::string_view message) {
    Feature feature;
    for (Wire entry{message}; entry.next();)
      if (entry.is(1, Type::bytes))
        feature.name = entry.bytes();
      else if (entry.is(2, Type::bytes))
        parse_feature(entry.bytes(), feature);
      else
        entry.skip();
    features_.push_back(feature);
  }

  /// The last of several kinds wins; lists of the same kind are joined.
  void parse_feature(std::string_view message, Feature& feature) {
    for (Wire field{message}; field.next();)
      if (field.is(1, Type::bytes))
        parse_list(field.bytes(), feature, Kind::bytes, bytes_, [](Wire& wire) { return wire.bytes(); });
      else if (field.is(2, Type::bytes))
        parse_list(field.bytes(), feature, Kind::floats, floats_, [](Wire& wire) { return wire.fixed_float(); });
      else if (field.is(3, Type::bytes))
        parse_list(field.bytes(), feature, Kind::ints, ints_,
                   [](Wire& wire) { return static_cast<std::int64_t>(wire.varint()); });
      else
        field.skip();
  }

  /// Numbers are encoded one per field, or packed: many in one field of bytes.
  template <class T, class Read>
  static void parse_list(std::string_view message, Feature& feature, Kind kind, std::vector<T>& values, Read read) {
    if (feature.kind != kind) feature = {feature.name, kind, values.size(), 0};
    const Type single = kind == Kind::bytes ? Type::bytes : kind == Kind::floats ? Type::fixed32 : Type::varint;
    for (Wire list{message}; list.next();)
      if (list.is(1, single))
        values.push_back(read(list));
      else if (list.is(1, Type::bytes))
        for (Wire packed{list.bytes()}; !packed.empty();) values.push_back(read(packed));
      else
        list.skip();
    feature.count = values.size() - feature.first;
  }

  /// If a name occurs several times, the last one wins.
  [[nodiscard]] const Feature* find(std::string_view name) const {
    for (std::size_t i = features_.size(); i-- > 0;)
      if (features_[i].name == name) return &features_[i];
    return nullptr;
  }

  template <class T>
  [[nodiscard]] std::span<const T> list(std::string_view name, Kind kind, const std::vector<T>& values) const {
    const Feature* feature = find(name);
    if (feature == nullptr) {
      std::string held;
      for (const Feature& each : features_) held += concat(held.empty() ? "'" : ", '", each.name, "'");
      throw InvalidArgument(concat("An example has no feature '", name, "'"),
                            held.empty() ? std::string("it has none") : concat("it has ", held),
                            "Use one of its names");
    }
    if (feature->kind == Kind::none) return {};
    if (feature->kind != kind)
      throw InvalidArgument(concat("Feature '", name, "' of an example is of another kind"),
                            concat("it holds ", name_of(feature->kind), ", not ", name_of(kind)),
                            "Request the kind that it holds");
    return {values.data() + feature->first, feature->count};
  }

  std::vector<Feature> features_;
  std::vector<std::string_view> bytes_;
  std::vector<float> floats_;
  std::vector<std::int64_t> ints_;
};

}  // namespace dist::data
