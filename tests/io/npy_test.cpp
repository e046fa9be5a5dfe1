#include <dist/io/npy.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/npy_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Float16;
using dist::Shape;
using dist::Tensor;
using dist::io::MemorySource;
using dist::io::read_npy;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;
using dist_test::npy;
using dist_test::npy_header;
using dist_test::values;

namespace {

template <class T>
Tensor<T> read(const Bytes& content, std::size_t max_elements = 1000) {
  MemorySource source{content, "file.npy"};
  return read_npy<T>(source, max_elements);
}
template <class T>
std::vector<T> numbers(const std::string& descr, std::initializer_list<unsigned> content) {
  const std::size_t count = content.size() / sizeof(T);
  return values(read<T>(npy(npy_header(descr, "(" + std::to_string(count) + ",)"), bytes(content))));
}
template <class T = std::uint8_t>
void refuse(const Bytes& content, const std::string& because, std::size_t max_elements = 1000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(read<T>(content, max_elements)), doctest::Contains(because.c_str()),
                       FileError);
}
void refuse_header(const std::string& dictionary, const std::string& because) {
  refuse(npy(dictionary, bytes({1, 2, 3, 4, 5, 6})), because);
}

const Bytes two_by_three = npy(npy_header("|u1", "(2, 3)"), bytes({1, 2, 3, 4, 5, 255}));

}  // namespace

TEST_CASE("read_npy reads every type of numbers (spec I29)") {
  CHECK(numbers<bool>("|b1", {1, 0, 7}) == std::vector<bool>{true, false, true});
  CHECK(numbers<std::uint8_t>("|u1", {1, 255}) == std::vector<std::uint8_t>{1, 255});
  CHECK(numbers<std::int8_t>("|i1", {127, 128}) == std::vector<std::int8_t>{127, -128});
  CHECK(numbers<std::uint16_t>("<u2", {2, 1}) == std::vector<std::uint16_t>{258});
  CHECK(numbers<std::int16_t>("<i2", {254, 255}) == std::vector<std::int16_t>{-2});
  CHECK(numbers<std::uint32_t>("<u4", {4, 3, 2, 255}) == std::vector<std::uint32_t>{0xFF020304});
  CHECK(numbers<std::int32_t>("<i4", {255, 255, 255, 255}) == std::vector<std::int32_t>{-1});
  CHECK(numbers<std::uint64_t>("<u8", {1, 0, 0, 0, 0, 0, 0, 128}) == std::vector<std::uint64_t>{0x8000000000000001});
  CHECK(numbers<std::int64_t>("<i8", {254, 255, 255, 255, 255, 255, 255, 255}) == std::vector<std::int64_t>{-2});
  // In IEEE 754, 1.5 is 0x3E00, 0x3FC00000 and 0x3FF8000000000000.
  CHECK(static_cast<float>(numbers<Float16>("<f2", {0, 0x3E}).at(0)) == 1.5F);
  CHECK(numbers<float>("<f4", {0, 0, 0xC0, 0x3F}) == std::vector<float>{1.5F});
  CHECK(numbers<double>("<f8", {0, 0, 0, 0, 0, 0, 0xF8, 0x3F}) == std::vector<double>{1.5});
}

TEST_CASE("read_npy reads big-endian elements") {
  CHECK(numbers<std::int16_t>(">i2", {1, 2}) == std::vector<std::int16_t>{258});
  CHECK(numbers<double>(">f8", {0x3F, 0xF8, 0, 0, 0, 0, 0, 0}) == std::vector<double>{1.5});
  CHECK(numbers<std::uint8_t>(">u1", {9}) == std::vector<std::uint8_t>{9});
}

TEST_CASE("read_npy reads shapes of any rank, row-major or column-major") {
  CHECK(read<std::uint8_t>(two_by_three).shape() == Shape{2, 3});
  const Tensor<std::uint8_t> scalar = read<std::uint8_t>(npy(npy_header("|u1", "()"), bytes({7})));
  CHECK(scalar.shape() == Shape{});
  CHECK(scalar[0] == 7);
  CHECK(read<std::uint8_t>(npy(npy_header("|u1", "(0, 9)"))).shape() == Shape{0, 9});

  const auto columns = [](const std::string& shape, std::initializer_list<unsigned> content) {
    return values(read<std::uint8_t>(npy(npy_header("|u1", shape, true), bytes(content))));
  };
  // In column-major order, [[1, 2, 3], [4, 5, 6]] is 1 4 2 5 3 6.
  CHECK(columns("(2, 3)", {1, 4, 2, 5, 3, 6}) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
  // Element [i, j, k] of a [2, 1, 3] array has offset i + 2 j + 2 k.
  CHECK(columns("(2, 1, 3)", {0, 10, 1, 11, 2, 12}) == std::vector<std::uint8_t>{0, 1, 2, 10, 11, 12});
  CHECK(columns("(3,)", {1, 2, 3}) == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(columns("(2, 0)", {}).empty());
}

TEST_CASE("extents may end with the L of Python 2") {
  CHECK(read<std::uint8_t>(npy(npy_header("|u1", "(2L, 3L)"), bytes({1, 2, 3, 4, 5, 6}))).shape() == Shape{2, 3});
  CHECK(read<std::uint8_t>(npy(npy_header("|u1", "(1L,)"), bytes({1}))).shape() == Shape{1});
}

TEST_CASE("versions 2 and 3 have longer length fields; keys may have any order, and strings either quotes") {
  const std::string dictionary = R"({"shape":(2,),"fortran_order":False,"descr":"|u1"})";
  const auto length = static_cast<unsigned>(dictionary.size());
  for (const unsigned version : {2U, 3U}) {
    const Bytes content =
        joined({bytes("\x93NUMPY"), bytes({version, 0, length, 0, 0, 0}), bytes(dictionary), bytes({4, 5})});
    CHECK(values(read<std::uint8_t>(content)) == std::vector<std::uint8_t>{4, 5});
  }
  CHECK(read<std::uint8_t>(npy(npy_header("|u1", "( 1 , )") + "      \n", bytes({1}))).shape() == Shape{1});
}

TEST_CASE("read_npy supports short reads, and files by path") {
  for (std::size_t step = 1; step < 5; ++step) {
    dist_test::Trickle source{MemorySource{two_by_three}, step};
    CHECK(values(read_npy<std::uint8_t>(source, 6)) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
  }
  support::TemporaryFolder folder;
  CHECK(read_npy<std::uint8_t>(folder.write("x.npy", two_by_three)).shape() == Shape{2, 3});
  CHECK_THROWS_AS(read_npy<std::uint8_t>(folder.path("nowhere.npy")), FileError);
}

TEST_CASE("another element type is rejected, naming both") {
  refuse<float>(two_by_three,
                "File 'file.npy' has elements of another type (its elements are '|u1' in NumPy's notation, wanted f32 "
                "('f4')). Read it as");
  const auto floats = [](const std::string& descr) { return npy(npy_header(descr, "(1,)"), bytes({0, 0, 0, 0})); };
  refuse<std::int32_t>(floats("<f4"), "its elements are '<f4'");
  refuse<std::uint32_t>(floats("<i4"), "wanted u32 ('u4')");
  refuse<float>(floats("|f4"), "'|f4'");
  refuse<float>(floats("f4"), "'f4'");
  refuse<float>(floats(""), "''");
  refuse<float>(floats("<c8"), "'<c8'");
  refuse<bool>(two_by_three, "wanted bool ('b1')");
  refuse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), "its elements have named fields");
}

TEST_CASE("read_npy_converted converts elements of another type") {
  const auto converted = []<class T>(const std::string& descr, std::initializer_list<unsigned> content, T) {
    const std::string shape = content.size() == 6 ? "(2, 3)" : "(1,)";
    const Bytes file = npy(npy_header(descr, shape, true), bytes(content));
    MemorySource source{file, "file.npy"};
    return values(dist::io::read_npy_converted<T>(source));
  };
  CHECK(converted("|u1", {1, 4, 2, 5, 3, 255}, float{}) == std::vector<float>{1, 2, 3, 4, 5, 255});
  CHECK(converted("|b1", {0, 1, 9, 0, 0, 0}, double{}) == std::vector<double>{0, 1, 0, 1, 0, 0});
  CHECK(converted(">f4", {0x3F, 0xC0, 0, 0}, dist::BFloat16{})[0].bits() == 0x3FC0);
  CHECK(converted("<f2", {0, 0x3E}, float{}) == std::vector<float>{1.5F});
  CHECK(converted("=u2", {3, 0}, float{}).size() == 1);
  CHECK_THROWS_WITH_AS(converted("<i2", {0, 1}, std::uint8_t{}), doctest::Contains("element 0 is 256, wanted u8"),
                       FileError);
  CHECK_THROWS_WITH_AS(converted("<c8", {0, 0, 0, 0, 0, 0, 0, 0}, float{}),
                       "File 'file.npy' has elements of an unknown type (its elements are '<c8' in NumPy's notation). "
                       "Save it as another type with numpy's astype.",
                       FileError);
  CHECK_THROWS_AS(converted("b2", {0, 0}, float{}), FileError);
  CHECK_THROWS_AS(converted("<b2", {0, 0}, float{}), FileError);  // the kind and size of BFloat16
  support::TemporaryFolder folder;
  CHECK(values(dist::io::read_npy_converted<int>(folder.write("x.npy", two_by_three))) ==
        std::vector<int>{1, 2, 3, 4, 5, 255});
}

TEST_CASE("data other than NPY are rejected by their first bytes") {
  refuse({}, "File 'file.npy' is not an NPY file (it has 0 bytes");
  refuse(bytes("PNG data"), "it does not begin with \\x93NUMPY");
  refuse(bytes("PK\x03\x04----"), "read it with Npz");
  refuse(joined({bytes("\x93NUMPY"), bytes({4, 0})}), "version 4, expected 1 to 3");
}

TEST_CASE("invalid headers are rejected") {
  refuse_header("", "near byte 0: '{' was expected");
  refuse_header("{}", "descr, fortran_order or shape is missing");
  refuse_header("{'descr': '|u1', 'shape': (6,)}", "fortran_order or shape is missing");
  refuse_header("{'descr': '|u1', 'descr': '|u1'}", "'descr' is not a key of an NPY header, or is repeated");
  refuse_header("{'order': 1}", "'order' is not a key");
  refuse_header("{'\x1b[2J': 1}", "'\\x1b[2J' is not a key");  // a terminal control sequence
  refuse_header("{'" + std::string(5000, 'a') + "': 1}", "'" + std::string(80, 'a') + "... (5000 bytes)' is not a key");
  refuse_header("{'descr' '|u1'}", "near byte 9: ':' was expected");
  refuse_header("{'descr': '|u1' 'shape': ()}", "'}' was expected");
  refuse_header("{'descr", "a string has no end");
  refuse_header("{descr", "a string was expected");
  refuse_header("{'fortran_order': 0}", "True or False was expected");
  refuse_header("{'shape': 6}", "'(' was expected");
  refuse_header("{'shape': (6 6)}", "')' was expected");
  refuse_header("{'shape': (-1,)}", "an extent was expected");
  refuse_header("{'shape': (18446744073709551616,)}", "an extent is larger than any memory");
  refuse_header(npy_header("|u1", "(6,)") + "x", "something follows the dictionary");
  refuse_header(npy_header("|u1", "(1,1,1,1,1,1,1)"), "more than 6 axes");
}

TEST_CASE("a truncated NPY file is rejected at any length") {
  for (std::size_t length = 0; length < two_by_three.size(); ++length) {
    CAPTURE(length);
    const Bytes cut(two_by_three.begin(), two_by_three.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_THROWS_AS(static_cast<void>(read<std::uint8_t>(cut)), FileError);
  }
  refuse(npy(npy_header("|u1", "(3,)"), bytes({1})), "announces shape [3], 3 bytes of elements, but 1 follow");
  refuse(joined({two_by_three, bytes({0})}), "6 bytes of elements, but more follow");
}

TEST_CASE("malicious element counts are rejected before allocation") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  refuse(two_by_three, "the extents up to axis 1 multiply to more than 5", 5);
  refuse_header(npy_header("|u1", "(0, 4294967296, 4294967296, 4294967296)"), "multiply to more than 1000");
  refuse(npy(npy_header("|u1", "(4294967296, 4294967296)")), "multiply to more than", most);
  refuse(npy(npy_header("<u1", "(68719476736,)")), "but 0 follow", most);
  refuse(joined({bytes("\x93NUMPY"), bytes({2, 0, 255, 255, 255, 255})}), "4294967295 bytes, at most 65536 are read");
}
