#include <dist/data/tf_example.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/tfrecord.hpp>
#include <io/bytes.hpp>
#include <support/allocations.hpp>
#include <support/temporary_folder.hpp>

using dist::InvalidArgument;
using dist::data::TfExample;

namespace {

std::string chars(std::initializer_list<unsigned> values) {
  std::string result;
  for (const unsigned value : values) result.push_back(static_cast<char>(value));
  return result;
}
/// Returns a field of bytes: its number with wire type 2, the length, the content.
std::string field(unsigned number, const std::string& content) {
  return chars({number << 3 | 2, static_cast<unsigned>(content.size())}) + content;
}
/// Returns an Example with one feature.
std::string example(const std::string& name, const std::string& feature) {
  return field(1, field(1, field(1, name) + field(2, feature)));
}
void refuse(const std::string& record, const char* because) {
  CHECK_THROWS_WITH_AS(TfExample{record}, doctest::Contains(because), InvalidArgument);
}

// Output of Google's protobuf for Python (7.36.2) for image: floats 0.5, -2, 3.25; label: integers 7, -1, 300; name:
// bytes "ab" and ""; none: a feature that is not set.
const std::string of_protobuf =
    chars({10, 83,  10,  25,  10,  5,   105, 109, 97,  103, 101, 18,  16, 18,  14,  10,  12,  0,   0,  0,   63,  0,
           0,  0,   192, 0,   0,   80,  64,  10,  26,  10,  5,   108, 97, 98,  101, 108, 18,  17,  26, 15,  10,  13,
           7,  255, 255, 255, 255, 255, 255, 255, 255, 255, 1,   172, 2,  10,  16,  10,  4,   110, 97, 109, 101, 18,
           8,  10,  6,   10,  2,   97,  98,  10,  0,   10,  8,   10,  4,  110, 111, 110, 101, 18,  0});

template <class T>
std::vector<T> vector_of(std::span<const T> list) {
  return {list.begin(), list.end()};
}

}  // namespace

TEST_CASE("TfExample parses an Example of Google's protobuf (spec I30)") {
  const TfExample parsed{of_protobuf};
  CHECK(vector_of(parsed.floats("image")) == std::vector<float>{0.5F, -2.0F, 3.25F});
  CHECK(vector_of(parsed.ints("label")) == std::vector<std::int64_t>{7, -1, 300});
  CHECK(vector_of(parsed.bytes("name")) == std::vector<std::string_view>{"ab", ""});
  CHECK(parsed.contains("none"));
  CHECK(parsed.floats("none").empty());
  CHECK(parsed.bytes("none").empty());
  CHECK_FALSE(parsed.contains("imag"));
}

TEST_CASE("numbers may be single fields, packed, or both") {
  const std::string one = chars({0x0D, 0, 0, 0xC0, 0x3F});  // field 1, fixed32: 1.5
  const std::string packed = field(1, chars({0, 0, 0xC0, 0x3F, 0, 0, 0xC0, 0xBF}));
  CHECK(vector_of(TfExample{example("x", field(2, one + packed))}.floats("x")) ==
        std::vector<float>{1.5F, 1.5F, -1.5F});
  const std::string five = chars({0x08, 5});  // field 1, varint
  CHECK(vector_of(TfExample{example("x", field(3, five + field(1, chars({6, 0x80, 1})) + five))}.ints("x")) ==
        std::vector<std::int64_t>{5, 6, 128, 5});
}

TEST_CASE("repeated and unknown fields follow protobuf's rules") {
  const std::string five = field(3, chars({0x08, 5}));
  const std::string six = field(3, chars({0x08, 6}));
  const std::string text = field(1, field(1, "t"));
  // Lists of one kind are joined; the last kind and the last entry of a name win.
  CHECK(vector_of(TfExample{example("x", five + six)}.ints("x")) == std::vector<std::int64_t>{5, 6});
  CHECK(vector_of(TfExample{example("x", five + text)}.bytes("x")) == std::vector<std::string_view>{"t"});
  CHECK(vector_of(TfExample{example("x", five) + example("y", text) + example("x", six)}.ints("x")) ==
        std::vector<std::int64_t>{6});
  // Unknown fields of every wire type, at every level.
  const std::string unknown = chars({0x78, 0x81, 1, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7D, 1, 2, 3, 4}) + field(15, "zz");
  const std::string entry = unknown + field(1, "x") + field(2, unknown + field(3, unknown + chars({0x08, 5})));
  CHECK(vector_of(TfExample{unknown + field(1, unknown + field(1, entry))}.ints("x")) == std::vector<std::int64_t>{5});
  CHECK_FALSE(TfExample{""}.contains("x"));
}

TEST_CASE("records other than Examples are rejected") {
  for (std::size_t length = 1; length < of_protobuf.size(); ++length)
    CHECK_THROWS_AS(TfExample{of_protobuf.substr(0, length)}, InvalidArgument);
  refuse(chars({10}), "A record is not a tf.train.Example (it ends inside a field)");
  refuse(chars({10, 200, 1, 0}), "it ends inside a field");
  refuse(chars({10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}), "it ends inside a field");
  refuse(std::string(11, '\xFF'), "a number has more than ten bytes");
  refuse(chars({0x02, 0}), "a field has the number 0");
  refuse(chars({0x0B}), "a field has an unknown wire type");
  refuse(example("x", field(2, field(1, "abc"))), "it ends inside a field");
}

TEST_CASE("a feature that is missing, or of another kind, is rejected by name") {
  const TfExample parsed{of_protobuf};
  CHECK_THROWS_WITH_AS(static_cast<void>(parsed.ints("labels")),
                       "An example has no feature 'labels' (it has 'image', 'label', 'name', 'none'). Use one of its "
                       "names.",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(parsed.ints("image")),
      doctest::Contains("Feature 'image' of an example is of another kind (it holds floats, not integers)"),
      InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(TfExample{}.bytes("x")), doctest::Contains("it has none"), InvalidArgument);
}

TEST_CASE("parsing the next record reuses memory") {
  TfExample parsed{of_protobuf};
  const std::size_t before = allocations;
  for (int i = 0; i < 3; ++i) parsed.parse(of_protobuf);
  CHECK(allocations == before);
  CHECK(parsed.ints("label").size() == 3);
}

TEST_CASE("files of Examples can be parsed and batched (spec I08, I30)") {
  support::TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 3; ++i) dist::io::append_tfrecord(content, of_protobuf);
  const auto examples = dist::data::tfrecord(folder.write("examples", dist_test::bytes(content))) |
                        dist::data::map([](const std::string& record) {
                          const TfExample parsed{record};
                          dist::Tensor<float> image{dist::Shape{3}};
                          std::copy_n(parsed.floats("image").data(), 3, image.data());
                          return dist::data::Example{std::move(image), parsed.ints("label")[0]};
                        }) |
                        dist::data::batch(2);
  const auto batches = dist_test::collect(examples);
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].x.shape() == dist::Shape{2, 3});
  CHECK(batches[0].x[5] == 3.25F);
  CHECK(batches[1].y[0] == 7);
}
