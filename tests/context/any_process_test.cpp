#include <dist/context/any_process.hpp>

#include <doctest/doctest.h>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

// With several processes: multi_worker/model_test.cpp, where one worker stops the training of all.
TEST_CASE("in one process its own answer is that of all") {
  dist::Default none;
  CHECK(dist::detail::any_process(none, true));
  CHECK_FALSE(dist::detail::any_process(none, false));
  dist::Mirrored<dist::SharedMemoryAllReduce> two{2};
  CHECK(dist::detail::any_process(two, true));
  CHECK_FALSE(dist::detail::any_process(two, false));
}
