#include <dist/server/archive.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/float16.hpp>

#include "support/what_throws.hpp"

namespace {

using dist::ArchiveError;
using dist::ArchiveReader;
using dist::ArchiveWriter;
using dist::from_bytes;
using dist::to_bytes;
using support::what_throws;
namespace rpc = dist::rpc;

enum class Colour : std::uint16_t { red, green = 700 };
enum Open { one, two };
enum Closed : int { minus = -1 };

struct Inner {
  std::vector<float> values;
  std::optional<std::string> name;
  bool operator==(const Inner&) const = default;
};
struct Outer {
  int number;
  Inner inner;
  std::array<Inner, 2> both;
  bool operator==(const Outer&) const = default;
};
struct Node {
  int number;
  std::vector<Node> children;
  bool operator==(const Node&) const = default;
};
struct Nothing {
  bool operator==(const Nothing&) const = default;
};
struct Nine {
  int a, b, c, d, e, f, g, h, i;
};
struct RefersToNumber {
  const int& number;
};

/// A fraction with private members.
class Fraction {
 public:
  Fraction(int above, int below) : above_(above), below_(below) {}
  void write_to(ArchiveWriter& archive) const { archive.put(above_).put(below_); }
  static Fraction read_from(ArchiveReader& archive) {
    const int above = archive.get<int>();
    const int below = archive.get<int>();
    if (below == 0) throw ArchiveError("A fraction has no value", "it is divided by 0", "Send another one");
    return {above, below};
  }
  bool operator==(const Fraction&) const = default;

 private:
  int above_, below_;
};

/// Divides the bytes into pieces of `size`, some of them empty.
std::vector<rpc::Chunk> pieces_of(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<rpc::Chunk> pieces{{}};
  for (; bytes.size() > size; bytes = bytes.subspan(size)) {
    pieces.push_back(bytes.first(size));
    pieces.emplace_back();
  }
  pieces.push_back(bytes);
  return pieces;
}

/// Checks that the bytes of `value` are read correctly in all divisions.
template <class T>
void check_same(const T& value) {
  const std::vector<std::byte> bytes = to_bytes(value);
  CHECK(from_bytes<T>(bytes) == value);
  for (const std::size_t size : {1u, 3u, 8u}) CHECK(from_bytes<T>(pieces_of(bytes, size)) == value);
  // All truncations and an extra byte are detected.
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(static_cast<void>(from_bytes<T>(std::span{bytes}.first(size))), ArchiveError);
  std::vector<std::byte> longer = bytes;
  longer.emplace_back();
  CHECK_THROWS_AS(static_cast<void>(from_bytes<T>(longer)), ArchiveError);
}

template <class... Values>
std::vector<std::byte> bytes_of(const Values&... values) {
  ArchiveWriter writer;
  (writer.put(values), ...);
  return writer.take();
}

static_assert(dist::Sendable<int> && dist::Sendable<std::string> && dist::Sendable<Outer> && dist::Sendable<Node>);
static_assert(dist::Sendable<std::tuple<>> && dist::Sendable<Nothing> && dist::Sendable<std::vector<bool>>);
static_assert(dist::Sendable<Fraction> && dist::Sendable<std::vector<Fraction>> && dist::Sendable<Closed>);
static_assert(dist::Sendable<dist::Tensor<dist::BFloat16>> && dist::Sendable<dist::IndexedSlices<double>>);
static_assert(!dist::Sendable<int*> && !dist::Sendable<const char*> && !dist::Sendable<std::unique_ptr<int>>);
static_assert(!dist::Sendable<std::string_view> && !dist::Sendable<std::span<int>> && !dist::Sendable<int&>);
static_assert(!dist::Sendable<dist::TensorView<const float>> && !dist::Sendable<Open> && !dist::Sendable<Nine>);
static_assert(!dist::Sendable<std::tuple<int, std::vector<std::optional<std::string_view>>>>);
static_assert(!dist::Sendable<std::vector<Nothing>> && !dist::Sendable<long double> && !dist::Sendable<RefersToNumber>);
static_assert(!dist::Sendable<std::map<int, int>> && !dist::Sendable<dist::Tensor<long double>>);

}  // namespace

TEST_CASE_TEMPLATE("numbers are unchanged by archiving", T, char, std::int8_t, std::uint16_t, int, long long,
                   std::size_t, float, double, dist::Float16, dist::BFloat16) {
  check_same(T(1));
  check_same(std::numeric_limits<T>::lowest());
  check_same(std::vector<T>{T(1), T(2), T(3)});
  check_same(std::array<T, 2>{T(1), T(2)});
  check_same(dist::Tensor<T>{{2, 2}, {T(1), T(2), T(3), T(4)}});
}

TEST_CASE("texts, lists, structures and plain structs are unchanged by archiving") {
  check_same(true);
  check_same(Colour::green);
  check_same(minus);
  check_same(std::string{});
  check_same(std::string{"a\0b", 3});
  check_same(std::vector<std::string>{"", "one", "two"});
  check_same(std::vector<bool>{true, false, true});
  check_same(std::vector<std::vector<int>>{{}, {1}, {2, 3}});
  check_same(std::optional<int>{});
  check_same(std::optional<std::optional<int>>{std::optional<int>{}});
  check_same(std::pair{std::string{"a"}, 2.5});
  check_same(std::tuple{1, std::string{"b"}, std::vector<float>{1}});
  check_same(std::tuple<std::tuple<int>>{std::tuple<int>{3}});
  check_same(std::array<std::array<float, 3>, 2>{{{1, 2, 3}, {4, 5, 6}}});
  check_same(std::array<std::string, 2>{"a", "b"});
  check_same(Outer{1, {{1, 2}, "name"}, {Inner{{}, {}}, Inner{{3}, "other"}}});
  check_same(Node{1, {{2, {}}, {3, {{4, {}}}}}});
  check_same(dist::Shape{});
  check_same(dist::Shape{3, 0, 5});
  check_same(dist::Tensor<bool>{{3}, {true, false, true}});
  check_same(dist::Tensor<float>{dist::Shape{0, 7}});
  check_same(dist::IndexedSlices<float>{{3, 0, 3}, {{3, 2}, {1, 2, 3, 4, 5, 6}}, {10, 2}});
  check_same(Fraction{1, 3});
  check_same(std::vector<Fraction>{{1, 3}, {2, 5}});
}

TEST_CASE("values without state take no bytes") {
  CHECK(to_bytes(std::tuple{}).empty());
  CHECK(to_bytes(Nothing{}).empty());
  auto twice = [](int x) { return 2 * x; };
  CHECK(to_bytes(twice).empty());
  CHECK(from_bytes<decltype(twice)>(std::vector<std::byte>{})(4) == 8);
}

TEST_CASE("values are read in order, and the remaining bytes are known") {
  ArchiveWriter writer;
  writer.put(std::uint8_t{1}).put(std::string{"two"}).put(3.0f);
  writer.put_bytes("raw", 3);
  const std::vector<std::byte> bytes = writer.take();
  CHECK(writer.content().empty());
  CHECK(bytes.size() == 1 + 8 + 3 + 4 + 3);
  const std::vector<rpc::Chunk> pieces = pieces_of(bytes, 2);
  ArchiveReader reader{pieces};
  CHECK(reader.get<std::uint8_t>() == 1);
  CHECK(reader.get<std::string>() == "two");
  CHECK(reader.get<float>() == 3.0f);
  CHECK(reader.left() == 3);
  const rpc::ChunkList raw = reader.get_pieces(3);
  CHECK(rpc::joined(raw) == std::vector<std::byte>{std::byte{'r'}, std::byte{'a'}, std::byte{'w'}});
  for (const rpc::Chunk piece : raw)
    CHECK((piece.data() >= bytes.data() && piece.data() < bytes.data() + bytes.size()));
  CHECK_NOTHROW(reader.expect_end());
  CHECK_THROWS_AS(static_cast<void>(reader.get_pieces(1)), ArchiveError);
}

TEST_CASE("invalid bytes are rejected with the expected type") {
  const auto refusal = [](auto type, const std::vector<std::byte>& bytes) {
    return what_throws<ArchiveError>([&] { static_cast<void>(from_bytes<decltype(type)>(bytes, "The greeting")); });
  };
  const std::string end = ". Start all processes of the job from one build of the program.";
  CHECK(refusal(0, bytes_of(std::uint8_t{1})) ==
        "The greeting ends early (4 bytes of int were expected, 1 are left)" + end);
  CHECK(refusal(0, bytes_of(1, std::uint8_t{2})) == "The greeting is longer than its values (1 bytes are left)" + end);
  CHECK(refusal(false, bytes_of(std::uint8_t{2})) == "The greeting contains an invalid bool (the byte 2)" + end);
  CHECK(refusal(std::optional<int>{}, bytes_of(std::uint8_t{7})) ==
        "The greeting contains an invalid bool (the byte 7)" + end);
  CHECK(refusal(std::string{}, bytes_of(~std::uint64_t{})) ==
        "The greeting declares too many elements (a std::string with 18446744073709551615 elements, but only 0 bytes "
        "are left)" +
            end);
  CHECK(refusal(std::vector<double>{}, bytes_of(std::uint64_t{2}, 1.0f, 1.0f, 1.0f))
            .find("with 2 elements, but only 12 bytes") != std::string::npos);
  CHECK(refusal(std::vector<Inner>{}, bytes_of(std::uint64_t{2}, std::uint64_t{0}, std::uint8_t{0}))
            .find("with 2 elements, but only 9 bytes") != std::string::npos);
  CHECK(refusal(Fraction{1, 1}, bytes_of(1, 0)) == "A fraction has no value (it is divided by 0). Send another one.");
}

TEST_CASE("invalid shapes, tensors and slices are rejected before memory is allocated") {
  const auto refusal = [](auto type, const std::vector<std::byte>& bytes) {
    return what_throws<ArchiveError>([&] { static_cast<void>(from_bytes<decltype(type)>(bytes)); });
  };
  using Extents = std::vector<std::size_t>;
  const std::size_t half = std::size_t{1} << 32;
  CHECK(refusal(dist::Shape{}, bytes_of(Extents(7, 1))).find("an invalid dist::Shape (7 axes)") != std::string::npos);
  CHECK(refusal(dist::Shape{}, bytes_of(Extents{half, half})).find("an invalid dist::Shape") != std::string::npos);
  CHECK(refusal(dist::Tensor<float>{}, bytes_of(Extents{half, 8}, 1.0f)).find("declares too many elements") !=
        std::string::npos);
  CHECK(refusal(dist::Tensor<bool>{}, bytes_of(Extents{1}, std::uint8_t{3})).find("an invalid bool") != std::string::npos);
  const std::vector<std::int64_t> rows{1};
  CHECK(refusal(dist::IndexedSlices<float>{}, bytes_of(Extents{1, 1}, rows, 1.0f))
            .find("index 1 of an array with 1 rows") != std::string::npos);
  CHECK(refusal(dist::IndexedSlices<float>{}, bytes_of(Extents{}, rows, 1.0f)).find("do not fit together") !=
        std::string::npos);
  CHECK(refusal(dist::IndexedSlices<float>{}, bytes_of(Extents{0, half, half}, rows)).find("IndexedSlices") !=
        std::string::npos);
}

TEST_CASE("deeply nested lists do not exhaust the stack") {
  Node deepest{1, {}};
  for (int depth = 1; depth < 64; ++depth) {
    Node around{depth, {}};
    around.children.push_back(std::move(deepest));
    deepest = std::move(around);
  }
  CHECK(from_bytes<Node>(to_bytes(deepest)) == deepest);
  const Node too_deep{0, {deepest}};
  CHECK(what_throws<dist::InvalidArgument>([&] { static_cast<void>(to_bytes(too_deep)); }) ==
        "A value cannot be sent (it has more than 64 levels of nested lists). Send its parts in one flat list, with "
        "indices instead of nested lists.");
  ArchiveWriter hostile;
  for (int depth = 0; depth < 1'000'000; ++depth) hostile.put(depth).put(std::uint64_t{1});
  CHECK(what_throws<ArchiveError>([&] {
          static_cast<void>(from_bytes<Node>(hostile.content()));
        }).find("its lists are nested too deeply") != std::string::npos);
}

namespace {

/// A type sent as parts, in an order different from its members.
struct Interval {
  explicit Interval(double middle, double width) : begin(middle - width / 2), end(middle + width / 2) {}
  [[nodiscard]] auto parts() const { return std::tie(begin, end); }
  [[nodiscard]] static Interval of_parts(double begin, double end) { return Interval{(begin + end) / 2, end - begin}; }
  double begin;
  double end;
};
struct Named {
  std::string_view name;
  std::vector<std::string_view> more;
  Interval interval;
};

}  // namespace

TEST_CASE("a type with parts is sent as these, and the receiver keeps the texts of string views") {
  static_assert(dist::Sendable<Interval>);
  static_assert(!dist::Sendable<Named>);
  std::vector<std::byte> bytes;
  {
    const std::string name = "a name that is longer than a short text";
    bytes = dist::ArchiveWriter{}.put_with_texts(Named{name, {"one", ""}, Interval{2, 1}}).put(7).take();
  }
  dist::ArchivedTexts texts;
  dist::ArchiveReader reader{bytes};
  const auto named = reader.get_with_texts<Named>(texts);
  CHECK(named.name == "a name that is longer than a short text");
  CHECK(named.more == std::vector<std::string_view>{"one", ""});
  CHECK(named.interval.begin == 1.5);
  CHECK(named.interval.end == 2.5);
  CHECK(texts.size() == 3);
  CHECK(reader.get<int>() == 7);
  dist::ArchiveReader cut{std::span<const std::byte>{bytes}.first(20)};
  CHECK_THROWS_AS((void)cut.get_with_texts<Named>(texts), dist::ArchiveError);
}
