#include <dist/cluster/json.hpp>

#include <doctest/doctest.h>

#include <string>

using dist::InvalidArgument;
using dist::detail::parse_json;

namespace {

void refuse(const std::string& written, const std::string& because) {
  CHECK_THROWS_WITH_AS(parse_json(written, "TF_CONFIG"),
                       doctest::Contains(("TF_CONFIG is not JSON that can be read (" + because).c_str()),
                       InvalidArgument);
}
std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("JSON is read (spec M01)") {
  CHECK(parse_json(R"({"a": [1, "x"], "b": {"a": null}})", "TF_CONFIG")["a"][1] == "x");
}

TEST_CASE("what is no JSON is refused with its place (spec M01)") {
  refuse("", "line 1, column 1: ");
  refuse("{'cluster': {}}", "line 1, column 2: ");
  refuse("{\n  \"cluster\": {},\n}", "line 3, column 1: ");
  refuse(R"({"a": 1} x)", "line 1, column 10: ");
  refuse("[\"\xff\"]", "line 1, column 3: ");
  refuse("1e999", "number overflow parsing '1e999'");
  CHECK_THROWS_WITH_AS(parse_json("[", "SM_HOSTS"), doctest::Contains("Set SM_HOSTS to JSON as json.dumps writes it."),
                       InvalidArgument);
}

TEST_CASE("a key that comes twice is refused, also deep inside") {
  refuse(R"({"worker": ["a:1"], "worker": ["b:1"]})", "the key 'worker' comes twice in one object)");
  refuse(R"({"cluster": {"worker": {"0": "a:1", "1": "b:1", "0": "c:1"}}})", "the key '0' comes twice in one object)");
  CHECK(parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "TF_CONFIG").size() == 2);
}

TEST_CASE("long and deep texts are refused before they cost anything") {
  CHECK_NOTHROW(parse_json(nested(32), "TF_CONFIG"));
  refuse(nested(33), "more than 32 brackets are open at once)");
  refuse(std::string(1 << 19, '['), "more than 32 brackets are open at once)");
  CHECK_NOTHROW(parse_json("1" + std::string((1 << 20) - 1, ' '), "TF_CONFIG"));
  refuse("1" + std::string(1 << 20, ' '), "1048577 bytes, at most 1048576 are read)");
}
