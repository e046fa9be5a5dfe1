#include <dist/summary/protobuf.hpp>

#include <doctest/doctest.h>

using dist::InvalidArgument;
using dist::summary::detail::require_text;

TEST_CASE("require_text rejects empty and unprintable strings") {
  require_text("a tag", "Größe/train loss");
  CHECK_THROWS_WITH_AS(require_text("a tag", ""), doctest::Contains("An event file got a tag that is empty"),
                       InvalidArgument);
  for (const char* words : {"\xFF", "a\nb", "cut \xC3"})
    CHECK_THROWS_WITH_AS(require_text("a tag", words), doctest::Contains("An event file got a tag that is not text"),
                         InvalidArgument);
}
