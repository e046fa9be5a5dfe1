#include <dist/io/safetensors.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/safetensors_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Shape;
using dist::Tensor;
using dist::io::ElementType;
using dist::io::RandomAccessMemory;
using dist::io::Safetensors;
using dist::io::SafetensorsEntry;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::safetensors;
using dist_test::values;

namespace {

Safetensors<RandomAccessMemory> open(const Bytes& content) {
  return Safetensors{RandomAccessMemory{content, "file.safetensors"}};
}

void refuse(const Bytes& content, const std::string& because) {
  CHECK_THROWS_WITH_AS(open(content), doctest::Contains(because.c_str()), FileError);
}
/// Checks that a file of one tensor "a" with these members and `data_bytes` bytes is rejected.
void refuse_tensor(const std::string& members, std::size_t data_bytes, const std::string& because) {
  refuse(safetensors("{\"a\":" + members + "}", Bytes(data_bytes)), because);
}
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

/// Checks the invariants of every accepted file.
void check_sound(const Safetensors<RandomAccessMemory>& file, const Bytes& content) {
  std::uint64_t place = file.entries().empty() ? content.size() : file.entries()[0].offset;
  for (const SafetensorsEntry& entry : file.entries()) {
    CHECK(entry.offset == place);
    if (entry.type) CHECK(entry.bytes == entry.shape.elements() * bytes_of(*entry.type));
    CHECK(file.find(entry.name) == &entry);
    place += entry.bytes;
  }
  CHECK(place == content.size());
}

}  // namespace

TEST_CASE("Safetensors reads a file of the package safetensors completely") {
  support::TemporaryFolder folder;
  const Safetensors file{folder.write("a.safetensors", dist_test::saved_by_safetensors)};
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file.entries()) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"scalar", "b/kernel", "empty", "a"});
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "np"}, {"note", "Größe"}});
  const SafetensorsEntry& kernel = file.entry("b/kernel");
  CHECK(kernel.dtype == "F32");
  CHECK(kernel.type == ElementType::f32);
  CHECK(kernel.shape == Shape{2, 3});
  CHECK(kernel.offset == dist_test::saved_by_safetensors.size() - 34 + 8);
  CHECK(kernel.bytes == 24);

  CHECK(values(file.read<float>("b/kernel")) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(file.read<float>("b/kernel").shape() == Shape{2, 3});
  CHECK(file.read<std::int64_t>("scalar").shape() == Shape{});
  CHECK(file.read<std::int64_t>("scalar")[0] == 7);
  CHECK(file.read<dist::Float16>("empty").shape() == Shape{0, 3});
  CHECK(values(file.read<bool>("a")) == std::vector<bool>{true, false});
  std::vector<float> into(6);
  file.read<float>("b/kernel", into);
  CHECK(into[5] == 5);
}

TEST_CASE("the bytes of a tensor are a source, for checksums of unknown types") {
  const auto file = open(dist_test::saved_by_safetensors);
  auto source = file.open(file.entry("scalar"));
  CHECK(source.name() == "file.safetensors:scalar");
  CHECK(dist_test::read_all(source, 3) == bytes({7, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_CASE("read_converted converts elements of other types") {
  const auto file = open(dist_test::saved_by_safetensors);
  CHECK(values(file.read_converted<double>("b/kernel")) == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(values(file.read_converted<std::uint8_t>("b/kernel")) == std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5});
  CHECK(values(file.read_converted<float>("a")) == std::vector<float>{1, 0});
  std::vector<dist::BFloat16> into(6);
  file.read_converted<dist::BFloat16>("b/kernel", into);
  CHECK(into[3].bits() == 0x4040);
  CHECK_THROWS_WITH_AS(file.read_converted<bool>("b/kernel"),
                       "File 'file.safetensors:b/kernel' has an element that the wanted type cannot hold (element 2 is "
                       "2, wanted bool). Read it as its stored type.",
                       FileError);
}

TEST_CASE("a missing name, another type and another shape are rejected by name") {
  const auto file = open(dist_test::saved_by_safetensors);
  CHECK(file.find("b") == nullptr);
  CHECK(file.find("z") == nullptr);
  CHECK_THROWS_WITH_AS(file.read<float>("b"),
                       "File 'file.safetensors' has no tensor 'b' (it holds 'scalar', 'b/kernel', 'empty', 'a'). Use "
                       "one of its names.",
                       FileError);
  CHECK_THROWS_WITH_AS(file.read<double>("b/kernel"),
                       "File 'file.safetensors' has a tensor of another type: 'b/kernel' (its elements are F32, wanted "
                       "F64). Read it as its stored type, or with conversion.",
                       FileError);
  std::vector<float> five(5);
  CHECK_THROWS_WITH_AS(file.read<float>("b/kernel", five),
                       "File 'file.safetensors' has a tensor of another shape: 'b/kernel' (its shape is [2, 3], wanted "
                       "5 elements). Load it into an object of that shape.",
                       FileError);
  CHECK_THROWS_AS(file.read_converted<float>("b/kernel", std::span<float>{}), FileError);
}

TEST_CASE("every type of the format has a size; types that this library lacks are listed, but not read") {
  struct {
    const char* dtype;
    std::size_t bits;
  } constexpr types[] = {
      {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"U16", 16},        {"I16", 16},  {"U32", 32},
      {"I32", 32},    {"U64", 64},    {"I64", 64},        {"F16", 16},        {"BF16", 16}, {"F32", 32},
      {"F64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8},     {"F8_E8M0", 8},     {"C64", 64},  {"F4", 4},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
  };
  std::size_t known = 0;
  for (const auto& type : types) {
    const char* const dtype = type.dtype;
    const std::size_t bits = type.bits;
    CAPTURE(dtype);
    const std::string size = std::to_string(bits);  // 8 elements have as many bytes as one has bits
    const Bytes content = safetensors("{\"a\":" + tensor(dtype, "[8]", "[0," + size + "]") + "}", Bytes(bits));
    const auto file = open(content);
    check_sound(file, content);
    if (file.entry("a").type) {
      ++known;
      CHECK(file.read_converted<float>("a")[7] == 0);
    } else {
      CHECK_THROWS_WITH_AS(file.read_converted<float>("a"),
                           doctest::Contains("has a tensor of a type that cannot be converted: 'a'"), FileError);
    }
    CHECK_THROWS_AS(open(safetensors("{\"a\":" + tensor(dtype, "[8]", "[0,5]") + "}", Bytes(5))), FileError);
  }
  CHECK(known == 13);
  refuse_tensor(tensor("F128", "[1]", "[0,16]"), 16, "has a tensor of an unknown type: 'a' (its dtype is 'F128')");
  refuse_tensor(tensor("f32", "[1]", "[0,4]"), 4, "its dtype is 'f32'");
  refuse_tensor(tensor("F4", "[3]", "[0,1]"), 1,
                "'a' has 1 bytes, but needs 1 and a part for its shape [3] and dtype F4");
}

TEST_CASE("the length of the header is limited by the file and by the format") {
  refuse({},
         "File 'file.safetensors' is not a valid safetensors file (it has 0 bytes, but the length of its header alone "
         "has 8)");
  refuse(bytes({1, 0, 0, 0, 0, 0, 0}), "it has 7 bytes");
  refuse(bytes({1, 0, 0, 0, 0, 0, 0, 0}), "it announces a header of 1 bytes, but 0 follow");
  refuse(bytes({255, 255, 255, 255, 255, 255, 255, 255, '{', '}'}),
         "it announces a header of 18446744073709551615 bytes, but 2 follow");
  Bytes content(8 + 100'000'001);
  content[3] = std::byte{5};  // 100'000'001 is 0x5F5E101
  content[2] = std::byte{0xF5};
  content[1] = std::byte{0xE1};
  content[0] = std::byte{0x01};
  refuse(content, "its header has 100000001 bytes, at most 100000000 are read");
  const Bytes small = safetensors("{}");
  CHECK(Safetensors{RandomAccessMemory{small}, 2}.entries().empty());
  CHECK_THROWS_WITH_AS((Safetensors{RandomAccessMemory{small}, 1}),
                       doctest::Contains("its header has 2 bytes, at most 1 are read"), FileError);
}

TEST_CASE("the header is one JSON object and spaces") {
  CHECK(open(safetensors("{}")).entries().empty());
  CHECK(open(safetensors("{}   ")).entries().empty());
  refuse(safetensors(""), "it does not begin with '{'");
  refuse(safetensors(" {}"), "it does not begin with '{'");
  refuse(safetensors("[]"), "it does not begin with '{'");
  refuse(safetensors("{}\n"), "something other than spaces follows it");
  refuse(safetensors(std::string("{}\0", 3)), "its header cannot be parsed as JSON: line 1, column 3");
  refuse(safetensors("{} {}"), "its header cannot be parsed as JSON: line 1, column 4");
  refuse(safetensors("{\"a\":"), "its header cannot be parsed as JSON: line 1");
  refuse(safetensors("{'a':1}"), "line 1, column 2");
  refuse(safetensors("{\"\xff\":1}"), "unable to decode byte 0xff");
  refuse(safetensors("{\"a\":" + tensor("U8", "[0]", "[0,0]") + ",\"a\":" + tensor("U8", "[0]", "[0,0]") + "}"),
         "duplicate object key near '\"a\"'");
  refuse(safetensors("{}", bytes({1})), "its tensors end at byte 0 after the header, but 1 bytes follow it");
}

TEST_CASE("metadata must be strings") {
  CHECK(open(safetensors(R"({"__metadata__":{}})")).metadata().empty());
  CHECK(open(safetensors(R"({"__metadata__":{"a":"b"}})")).metadata().at("a") == "b");
  refuse(safetensors(R"({"__metadata__":[]})"), "its __metadata__ is an array, not an object");
  refuse(safetensors(R"({"__metadata__":{"a":1}})"), "its __metadata__ has a number for 'a', not a string");
  refuse(safetensors(R"({"__metadata__":{"a":null}})"), "has null for 'a'");
}

TEST_CASE("a tensor has a dtype, a shape and two offsets, and nothing else") {
  refuse_tensor("1", 0, "'a' is a number, not an object");
  const std::string members = "'a' does not consist of dtype (a string), shape (an array) and data_offsets";
  refuse_tensor("{}", 0, members);
  refuse_tensor(R"({"dtype":"U8","shape":[1]})", 1, members);
  refuse_tensor(R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})", 1, members);
  refuse_tensor(R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", 1, members);
  refuse_tensor(R"({"dtype":"U8","shape":[1],"data_offsets":{}})", 1, members);
  refuse_tensor(tensor("U8", "[1]", "[0]"), 1, members);
  refuse_tensor(tensor("U8", "[1]", "[0,1,1]"), 1, members);
  refuse_tensor(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"order":"C"})", 1, members);
  refuse_tensor(tensor("U8", "[\"1\"]", "[0,1]"), 1, "'a' has a string in its shape or data_offsets where a count");
  refuse_tensor(tensor("U8", "[1.0]", "[0,1]"), 1, "'a' has a number in its shape");
  refuse_tensor(tensor("U8", "[-1]", "[0,1]"), 1, "'a' has a negative number in its shape");
  refuse_tensor(tensor("U8", "[1]", "[0,true]"), 1, "'a' has a boolean in its shape");
  refuse_tensor(tensor("U8", "[1]", "[-1,0]"), 1, "'a' has a negative number in its shape or data_offsets");
  refuse_tensor(tensor("U8", "[1]", "[0,9223372036854775808]"), 1, "too big integer");
}

TEST_CASE("shapes must match the offsets, and products of extents do not overflow") {
  refuse_tensor(tensor("F32", "[2,3]", "[0,23]"), 23,
                "'a' has 23 bytes, but needs 24 for its shape [2, 3] and dtype F32");
  refuse_tensor(tensor("F32", "[]", "[0,0]"), 0, "'a' has 0 bytes, but needs 4 for its shape []");
  refuse_tensor(tensor("U8", "[1,1,1,1,1,1,1]", "[0,1]"), 1,
                "has a tensor of a rank that cannot be read: 'a' (7 axes, at most 6)");
  refuse_tensor(tensor("U8", "[4294967296,4294967296]", "[0,0]"), 0, "'a' has extents whose product, up to axis 1");
  refuse_tensor(tensor("U8", "[0,4294967296,4294967296]", "[0,0]"), 0, "'a' has extents whose product, up to axis 2");
  refuse_tensor(tensor("F64", "[144115188075855872]", "[0,0]"), 0,
                "'a' has 0 bytes, but needs 1152921504606846976 for its");
  CHECK(open(safetensors("{\"a\":" + tensor("F64", "[0,1000000]", "[0,0]") + "}")).entry("a").shape ==
        Shape{0, 1'000'000});
}

TEST_CASE("every byte belongs to one tensor: no gaps, no overlaps, nothing beyond the file") {
  const auto two = [](const std::string& first, const std::string& second, std::size_t data_bytes) {
    return safetensors("{\"a\":" + tensor("U8", "[2]", first) + ",\"b\":" + tensor("U8", "[2]", second) + "}",
                       Bytes(data_bytes));
  };
  const Bytes turned = two("[2,4]", "[0,2]", 4);
  const auto file = open(turned);
  CHECK(file.entries()[0].name == "b");  // in the order of the bytes
  check_sound(file, turned);
  refuse(two("[0,2]", "[1,3]", 3), "the bytes of 'b' begin at 1, but the bytes of the previous tensor end at 2");
  refuse(two("[0,2]", "[0,2]", 2), "begin at 0, but the bytes of the previous tensor end at 2");
  refuse(two("[0,2]", "[3,5]", 5), "the bytes of 'b' begin at 3, but the bytes of the previous tensor end at 2");
  refuse(two("[1,3]", "[3,5]", 5), "the bytes of 'a' begin at 1, but the bytes of the previous tensor end at 0");
  refuse(two("[0,2]", "[2,4]", 5), "its tensors end at byte 4 after the header, but 5 bytes follow it");
  refuse(two("[0,2]", "[2,4]", 3), "'b' has the data_offsets 2 to 4, but the number of data bytes is 3");
  refuse(two("[2,0]", "[2,4]", 4), "'a' has the data_offsets 2 to 0, but the number of data bytes is 4");
  refuse(two("[0,2]", "[9223372036854775805,9223372036854775807]", 4), "'b' has the data_offsets 9223372036854775805");
}

TEST_CASE("a truncated safetensors file is rejected at any length") {
  const Bytes& whole = dist_test::saved_by_safetensors;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_THROWS_AS(open(cut), FileError);
  }
}

TEST_CASE("with any byte of the length and the header changed, a file is rejected or valid") {
  const Bytes& whole = dist_test::saved_by_safetensors;
  const std::size_t header_end = whole.size() - 34;
  std::size_t refused = 0;
  for (std::size_t place = 0; place < header_end; ++place)
    for (const unsigned value :
         {0U, 1U, 0x20U, 0x22U, 0x2CU, 0x30U, 0x31U, 0x39U, 0x5BU, 0x5CU, 0x5DU, 0x7BU, 0x7DU, 0x80U, 0xFFU}) {
      Bytes changed = whole;
      changed[place] = static_cast<std::byte>(value);
      try {
        check_sound(open(changed), changed);
      } catch (const FileError&) {
        ++refused;
      }
    }
  // A byte in a name or a text may differ.
  CHECK(refused > header_end * 15 * 3 / 4);
}

TEST_CASE("a file that is truncated after opening is reported") {
  struct Shrinking {
    Bytes content;
    std::string called = "file.safetensors";
    [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
      return RandomAccessMemory{std::span{content}.first(content.size() - 1)}.read_at(offset, buffer);
    }
    [[nodiscard]] std::uint64_t size() const { return content.size(); }
    [[nodiscard]] const std::string& name() const { return called; }
  };
  const Safetensors file{Shrinking{dist_test::saved_by_safetensors}};
  CHECK_NOTHROW(file.read<float>("b/kernel"));
  CHECK_THROWS_WITH_AS(file.read<bool>("a"), doctest::Contains("it became shorter while it was read"), FileError);
}
