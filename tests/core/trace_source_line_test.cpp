#include <dist/core/trace.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace {
dist::SourceLine line_of_caller(dist::SourceLine line = dist::here()) { return line; }
}  // namespace

TEST_CASE("a default argument is the line of the function's caller") {
  const dist::SourceLine line = line_of_caller();
  CHECK(line.line == __LINE__ - 1);
  CHECK(line.file == std::string_view{__FILE__});
}
