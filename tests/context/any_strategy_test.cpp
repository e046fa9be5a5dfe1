#include <dist/context/any_strategy.hpp>

#include <cstdint>
#include <span>

#include <doctest/doctest.h>

#include <dist/strategy/default.hpp>

TEST_CASE("a single-process strategy can be used through AnyStrategy") {
  dist::Default strategy;
  const dist::detail::AnyStrategyOf<dist::Default> of_strategy{strategy};
  const dist::detail::AnyStrategy& any = of_strategy;
  CHECK(any.worker_rank() == 0);
  CHECK(any.num_workers() == 1);
  CHECK(any.is_chief());
  CHECK(any.any_process(true));
  CHECK_FALSE(any.any_process(false));
  CHECK(any.broadcast_from_chief([] { return std::uint64_t{7}; }) == 7);

  const void* of_scope = nullptr;
  any.in_scope([&](const void* scope) { of_scope = scope; });
  CHECK(of_scope != nullptr);

  int calls = 0;
  any.run_collectively([&] { ++calls; });
  any.run_collectively({}, [&](auto barrier) {
    ++calls;
    barrier();
  });
  CHECK(calls == 2);

  std::uint64_t value = 3;
  any.broadcast({&value, 1});
  any.all_reduce_max({&value, 1});
  any.barrier();
  CHECK(value == 3);
  dist::detail::AnyStrategy::Record all[1] = {};
  any.gather("test", {'a'}, all);
  CHECK(all[0][0] == 'a');
}
