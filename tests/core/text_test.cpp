#include <dist/core/text.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using dist::text;

TEST_CASE("text joins strings, characters and numbers") {
  CHECK(text("replica ", 3, " of ", std::size_t{4}) == "replica 3 of 4");
  CHECK(text('a', std::string("bc"), std::string_view("de"), "fg") == "abcdefg");
}

TEST_CASE("text of nothing is empty") {
  CHECK(text().empty());
  CHECK(text("", std::string{}, std::string_view{}).empty());
}

TEST_CASE("text takes the extremes of every integer width") {
  CHECK(text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(text(-1, ' ', 0, ' ', 2147483647) == "-1 0 2147483647");
}

TEST_CASE("small integers are numbers, a char is a character") {
  CHECK(text(std::uint8_t{65}) == "65");
  CHECK(text(std::int8_t{-5}) == "-5");
  CHECK(text('A') == "A");
}

TEST_CASE("text of floating-point numbers has six significant digits, and no zeros after them") {
  CHECK(text(0.5) == "0.5");
  CHECK(text(-1.25F) == "-1.25");
  CHECK(text(600.0) == "600");
  CHECK(text(1e-9) == "1e-09");
  CHECK(text(2.0 / 3) == "0.666667");
}

TEST_CASE("text keeps a zero character inside a string view") {
  const std::string_view with_zero{"a\0b", 3};
  CHECK(text(with_zero, 'c') == std::string("a\0bc", 4));
}

namespace {
struct Spoken {
  int number;
};
std::string to_string(const Spoken& spoken) { return text("number ", spoken.number); }
}  // namespace

TEST_CASE("text joins what says itself what it is") { CHECK(text("<", Spoken{3}, ">") == "<number 3>"); }
