#include <dist/core/light_memory.hpp>

#include <doctest/doctest.h>

TEST_CASE("owning pointers are available") {
  const auto alone = std::make_unique<int>(1);
  const std::shared_ptr<int> shared = std::make_shared<int>(2);
  const std::shared_ptr<const void> other = shared;
  CHECK(*alone == 1);
  CHECK(shared.use_count() == 2);
}
