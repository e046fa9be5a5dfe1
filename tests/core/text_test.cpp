#include <dist/core/text.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iomanip>  // has std::quoted
#include <limits>
#include <string>
#include <string_view>

using dist::concat;

TEST_CASE("concat joins strings, characters and numbers, and so does its former name") {
  CHECK(concat("replica ", 3, " of ", std::size_t{4}) == "replica 3 of 4");
  CHECK(concat('a', std::string("bc"), std::string_view("de"), "fg") == "abcdefg");
  CHECK(dist::text("replica ", 3) == "replica 3");
}

TEST_CASE("a list is joined with separators, even between empty elements") {
  CHECK(dist::joined(std::array<int, 3>{2, 2, 1}, "x") == "2x2x1");
  CHECK(dist::joined(std::array<std::string_view, 3>{"", "a", ""}) == ", a, ");
  CHECK(dist::joined(std::array<int, 1>{7}) == "7");
  CHECK(dist::joined(std::array<int, 0>{}).empty());
  CHECK(dist::joined(std::array<int, 2>{3, 4}, "; ", [](int number) { return concat('%', number); }) == "%3; %4");
}

TEST_CASE("concat without arguments is empty") {
  CHECK(concat().empty());
  CHECK(concat("", std::string{}, std::string_view{}).empty());
}

TEST_CASE("concat formats the extremes of every integer width") {
  CHECK(concat(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(concat(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(concat(-1, ' ', 0, ' ', 2147483647) == "-1 0 2147483647");
}

TEST_CASE("small integers are numbers, a char is a character") {
  CHECK(concat(std::uint8_t{65}) == "65");
  CHECK(concat(std::int8_t{-5}) == "-5");
  CHECK(concat('A') == "A");
}

TEST_CASE("floating-point numbers have six significant digits without trailing zeros") {
  CHECK(concat(0.5) == "0.5");
  CHECK(concat(-1.25F) == "-1.25");
  CHECK(concat(600.0) == "600");
  CHECK(concat(1e-9) == "1e-09");
  CHECK(concat(2.0 / 3) == "0.666667");
}

TEST_CASE("durations are formatted in seconds, rounded to milliseconds") {
  using namespace std::chrono_literals;
  CHECK(concat(120s) == "120 s");
  CHECK(concat(250ms) == "0.25 s");
  CHECK(concat(1005ms) == "1.005 s");
  CHECK(concat(100s + 1us) == "100 s");
  CHECK(concat(0ns) == "0 s");
  CHECK(concat(-20ms) == "-0.02 s");
  CHECK(concat("after ", 2h, ", or ", 3) == "after 7200 s, or 3");
}

TEST_CASE("text keeps a zero character inside a string view") {
  const std::string_view with_zero{"a\0b", 3};
  CHECK(concat(with_zero, 'c') == std::string("a\0bc", 4));
}

TEST_CASE("quoted text escapes control characters, and keeps the letters of every language") {
  using namespace std::string_view_literals;
  CHECK(dist::quoted("worker") == "'worker'");
  CHECK(dist::quoted("\x1b[2J\a\n\0\x7f"sv) == R"('\x1b[2J\x07\x0a\x00\x7f')");
  CHECK(dist::quoted("B\xc3\xa4r \xe7\x86\x8a \xf0\x9f\x90\xbb") == "'B\xc3\xa4r \xe7\x86\x8a \xf0\x9f\x90\xbb'");
  // Control characters in two bytes, and in overlong form; invalid UTF-8; a truncated character.
  CHECK(dist::quoted("\xc2\x9b"
                     "1m") == R"('\xc2\x9b1m')");
  CHECK(dist::quoted("\xe0\x82\x9b") == R"('\xe0\x82\x9b')");
  CHECK(dist::quoted("\xf0\x80\x82\x9b") == R"('\xf0\x80\x82\x9b')");
  CHECK(dist::quoted("\x9b\xff\xc3(") == R"('\x9b\xff\xc3(')");
  CHECK(dist::quoted("\xe7\x86") == R"('\xe7\x86')");
  CHECK(dist::printable("one\n\ttwo\r", 100, "\n\t") == "one\n\ttwo\\x0d");
}

namespace dist {

/// Calls `quoted` unqualified, as the library does.
std::string quotes_of_strings(std::string mine, const std::string& others) {
  return concat(quoted(mine), quoted(others), quoted(std::string("temporary")), quoted(others.c_str()),
                quoted(mine, 2));
}

}  // namespace dist

TEST_CASE("the library's function quotes strings, even if std::quoted is a candidate") {
  CHECK(dist::quotes_of_strings("mi\"ne", "others") == "'mi\"ne''others''temporary''others''mi... (5 bytes)'");
}

TEST_CASE("long quoted text is cut, and its length appended") {
  CHECK(dist::quoted(std::string(80, 'a')) == "'" + std::string(80, 'a') + "'");
  CHECK(dist::quoted(std::string(1'000'000, 'a')) == "'" + std::string(80, 'a') + "... (1000000 bytes)'");
  CHECK(dist::printable("\xc3\xa4\xc3\xa4\xc3\xa4", 3) == "\xc3\xa4\xc3\xa4... (6 bytes)");  // no partial characters
}

namespace {
struct Spoken {
  int number;
};
std::string to_string(const Spoken& spoken) { return concat("number ", spoken.number); }
}  // namespace

TEST_CASE("concat formats types with a to_string") { CHECK(concat("<", Spoken{3}, ">") == "<number 3>"); }
