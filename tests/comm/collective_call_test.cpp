#include <dist/comm/collective_call.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

TEST_CASE("calls have equal fingerprints exactly if they are equal") {
  const std::string copied_name = "all_reduce";
  const dist::CollectiveCall literal{.operation = "all_reduce", .reduction = "sum", .elements = 3, .dtype = "f32"};
  CHECK(literal.fingerprint() == dist::CollectiveCall{copied_name, "sum", 3, "f32"}.fingerprint());
  std::set<std::uint64_t> seen;
  std::size_t calls = 0;
  for (const std::string_view operation : {"all_reduce", "all_gather", "broadcast", "update_shards", "a", ""})
    for (const std::string_view reduction : {"", "sum", "mean", "a name that takes more than one word of the machine"})
      for (const std::string_view dtype : {"f32", "f64", "i32"})
        for (const std::size_t elements : {0U, 1U, 1000U})
          for (const std::size_t root : {0U, 1U}) {
            seen.insert(dist::CollectiveCall{operation, reduction, elements, dtype, root, 0}.fingerprint());
            ++calls;
          }
  CHECK(seen.size() == calls);
}

TEST_CASE("a record stores the call with truncated names, and the fingerprint of the full names") {
  const std::string long_name(100, 'x');
  const dist::CollectiveCall call{"merge_call", long_name, 2, "arguments", 1, 7};
  const dist::CollectiveCallRecord record{call};
  CHECK(record.fingerprint == call.fingerprint());
  CHECK(record.call().operation == "merge_call");
  CHECK(record.call().reduction == long_name.substr(0, 47));
  CHECK(record.call().dtype == "arguments");
  CHECK(record.call().elements == 2);
  CHECK(record.call().root == 1);
  CHECK(record.call().counts == 7);
}

TEST_CASE("describe prints a call") {
  CHECK(describe(dist::CollectiveCall{"all_reduce", "sum", 12, "f32"}) == "all_reduce(sum) of 12 f32");
  CHECK(describe(dist::CollectiveCall{.operation = "broadcast", .elements = 3, .dtype = "i32", .root = 1}) ==
        "broadcast of 3 i32 from 1");
  CHECK(describe(dist::CollectiveCall{.operation = "barrier"}) == "barrier");
}

TEST_CASE("mismatched calls are reported with their members, even if only the counts differ (spec E12)") {
  const dist::CollectiveCall one{.operation = "all_gather", .elements = 3, .dtype = "f32", .counts = 1};
  dist::CollectiveCall other = one;
  other.counts = 2;
  const std::string only_counts = dist::detail::different_calls("worker", one, "0 did", other, "1 did").what();
  CHECK(only_counts ==
        "The workers did not issue the same collectives (0 did, but 1 did with different element counts of the "
        "workers). Call the same collectives with the same extents in the same order on every worker.");
  other.elements = 4;
  const std::string more = dist::detail::different_calls("replica", one, "0 did", other, "1 did").what();
  CHECK(more ==
        "The replicas did not issue the same collectives (0 did, but 1 did). "
        "Call the same collectives with the same extents in the same order on every replica.");
}

TEST_CASE("missing workers are reported with their last call (spec H13)") {
  const std::string said =
      dist::detail::workers_missing("worker 1", "worker 0 called barrier", 1'500'000'000, "last collective: none")
          .what();
  CHECK(said ==
        "Not all workers reached a collective in time: worker 1 did not (worker 0 called barrier and waited 1.5 s; the "
        "missing workers' last collective: none). Find out what they wait for, or give the strategy a longer timeout.");
}

TEST_CASE("a worker that has left is reported with its last call") {
  const std::string said =
      dist::detail::worker_left("worker 1", "worker 0 called barrier", "last collective: none").what();
  CHECK(said ==
        "The workers did not issue the same collectives (worker 0 called barrier, but worker 1 has ended its strategy; "
        "its last collective: none). Call collectives on every worker, and let all workers end together.");
}
