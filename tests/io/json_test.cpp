#include <dist/io/json.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

using dist::FileError;
using dist::InvalidArgument;
using dist::io::Json;
using dist::io::kind_of;
using dist::io::parse_json;
using dist::io::string_in;
using dist::io::written_json;

namespace {

void refuse(const std::string& written, const std::string& because) {
  CHECK_THROWS_WITH_AS(parse_json(written, "TF_CONFIG"),
                       doctest::Contains(("TF_CONFIG cannot be parsed as JSON (" + because).c_str()), InvalidArgument);
}
std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("parse_json parses JSON (spec M01)") {
  const Json json = parse_json(R"({"a": [1, "x"], "b": {"a": null}})", "TF_CONFIG");
  CHECK(string_in(json_array_get(json_object_get(json.get(), "a"), 1)) == "x");
  CHECK(json_is_null(json_object_get(json_object_get(json.get(), "b"), "a")));
}

TEST_CASE("invalid JSON is rejected with its position (spec M01)") {
  refuse("", "line 1, column 0: ");
  refuse("{'cluster': {}}", "line 1, column 2: ");
  refuse("{\n  \"cluster\": {},\n}", "line 3, column 1: ");
  refuse(R"({"a": 1} x)", "line 1, column 10: ");
  refuse(std::string("{}\0", 3), "line 1, column 3: ");
  CHECK_THROWS_WITH_AS(parse_json("[", "SM_HOSTS"), doctest::Contains("Set SM_HOSTS to JSON as json.dumps writes it."),
                       InvalidArgument);
}

TEST_CASE("invalid UTF-8 and NUL are rejected, both literal and escaped") {
  refuse("[\"\xff\"]", "line 1, column 2: unable to decode byte 0xff");
  refuse("[\"\xc0\x80\"]", "line 1, column 2: unable to decode byte 0xc0");      // NUL in two bytes
  refuse("[\"\xed\xa0\x80\"]", "line 1, column 2: unable to decode byte 0xed");  // half of a surrogate pair
  refuse(R"(["\ud800"])", "line 1, column 9: invalid Unicode");
  refuse(R"(["a\u0000b"])", "line 1, column 11: \\u0000 is not allowed");
  refuse(R"({"a\u0000": 1})", "line 1, column 10: NUL byte in object key");
  refuse(std::string("[\"a\0b\"]", 7), "line 1, column 3: control character 0x0");
  CHECK(string_in(parse_json(R"("\u00e4\ud83d\ude00")", "TF_CONFIG").get()) == "\u00e4\U0001F600");
}

TEST_CASE("a number is kept exactly or rejected") {
  CHECK(written_json(parse_json("9223372036854775807", "TF_CONFIG").get()) == "9223372036854775807");
  CHECK(written_json(parse_json("-9223372036854775808", "TF_CONFIG").get()) == "-9223372036854775808");
  refuse("9223372036854775808", "line 1, column 19: too big integer");
  refuse("-9223372036854775809", "line 1, column 20: too big negative integer");
  refuse("1e999", "line 1, column 5: real number overflow");
}

TEST_CASE("duplicate keys are rejected at any depth") {
  refuse(R"({"worker": ["a:1"], "worker": ["b:1"]})", "line 1, column 28: duplicate object key near '\"worker\"')");
  refuse(R"({"cluster": {"worker": {"0": "a:1", "1": "b:1", "0": "c:1"}}})",
         "line 1, column 51: duplicate object key near '\"0\"')");
  CHECK(json_array_size(parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "TF_CONFIG").get()) == 2);
}

TEST_CASE("long and deeply nested texts are rejected before they use memory") {
  CHECK_NOTHROW(parse_json(nested(2048), "TF_CONFIG"));
  refuse(nested(2049), "line 1, column 2049: maximum parsing depth reached");
  refuse(std::string(1 << 19, '['), "line 1, column 2049: maximum parsing depth reached");
  CHECK_NOTHROW(parse_json("1" + std::string((1 << 20) - 1, ' '), "TF_CONFIG"));
  refuse("1" + std::string(1 << 20, ' '), "1048577 bytes, at most 1048576 are read)");
  CHECK_NOTHROW(parse_json("[10]", "TF_CONFIG", 4));
  CHECK_THROWS_WITH_AS(parse_json("[100]", "TF_CONFIG", 4), doctest::Contains("5 bytes, at most 4 are read"),
                       InvalidArgument);
}

TEST_CASE("callers can throw their own errors") {
  const auto read = [](const char* written) {
    return parse_json(written, 10,
                      [](std::string_view why) { throw FileError("a.json", "is no manifest", why, "Save it again"); });
  };
  CHECK(json_is_array(read("[]").get()));
  CHECK_THROWS_WITH_AS(read("[1,]"), doctest::Contains("File 'a.json' is no manifest (line 1, column 4: "), FileError);
  CHECK_THROWS_WITH_AS(read("[1, 2, 3, 4]"), doctest::Contains("12 bytes, at most 10 are read"), FileError);
}

TEST_CASE("every kind of value has a name for messages, and can be written") {
  for (const auto& [written, kind] : std::initializer_list<std::pair<const char*, const char*>>{{"{}", "an object"},
                                                                                                {"[]", "an array"},
                                                                                                {"\"a\"", "a string"},
                                                                                                {"1", "a number"},
                                                                                                {"1.5", "a number"},
                                                                                                {"true", "a boolean"},
                                                                                                {"false", "a boolean"},
                                                                                                {"null", "null"}}) {
    const Json json = parse_json(written, "TF_CONFIG");
    CHECK(kind_of(json.get()) == kind);
    CHECK(written_json(json.get()) == written);
  }
  CHECK(written_json(parse_json("{ \"a\" : [1,\n\"x\"] }", "TF_CONFIG").get()) == R"({"a":[1,"x"]})");
}
