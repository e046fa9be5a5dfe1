#include <dist/coordinator/coordinator_state.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

TEST_CASE("by default, a tenth of the number of workers is the number of ignored timeouts (spec L16)") {
  dist::detail::CoordinatorState few{{}, {}, 1, {}, 9}, many{{}, {}, 1, {}, 25};
  CHECK_FALSE(few.failures.tolerates_timeout());
  CHECK(many.failures.tolerates_timeout());
  CHECK(many.failures.tolerates_timeout());
  CHECK_FALSE(many.failures.tolerates_timeout());
  dist::detail::CoordinatorState given{{.ignored_timeouts = 1}, {}, 1, {}, 1};
  CHECK(given.failures.tolerates_timeout());
  CHECK_FALSE(given.failures.tolerates_timeout());
}

TEST_CASE("resources are numbered and kept") {
  dist::detail::CoordinatorState state{{}, {}, 1, {{"a", "1"}}, 2};
  CHECK(state.workers() == 2);
  CHECK(state.servers.size() == 1);
  CHECK(state.resource(0) == nullptr);
  CHECK(state.add_resource({std::byte{1}}) == 0);
  const auto first = state.resource(0);
  for (std::size_t i = 1; i < 50; ++i) CHECK(state.add_resource({}) == i);
  CHECK(state.resource(0) == first);
  CHECK(first->size() == 1);
  CHECK(state.resource(49)->empty());
  CHECK(state.resource(50) == nullptr);
}
