#include <dist/comm/messages/call_agreement.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include <doctest/doctest.h>

using dist::detail::CallSummary;

namespace {

constexpr std::size_t members = 4;
using Calls = std::array<std::size_t, members>;  // by rank: the number of elements in each member's call

CallSummary brought(std::size_t rank, std::size_t elements) {
  CallSummary one;
  one.first.rank = rank;
  one.first.call = dist::CollectiveCallRecord{{.operation = "all_reduce", .elements = elements}};
  return one;
}
/// The summary of the members in this set, joined one by one.
CallSummary summary(const Calls& calls, unsigned set, bool downwards) {
  std::optional<CallSummary> all;
  for (std::size_t i = 0; i < members; ++i) {
    const std::size_t rank = downwards ? members - 1 - i : i;
    if ((set >> rank & 1U) == 0) continue;
    if (all)
      all->join(brought(rank, calls[rank]));
    else
      all = brought(rank, calls[rank]);
  }
  return *all;
}
/// The used bytes.
bool same(const CallSummary& one, const CallSummary& other) {
  return one.first.rank == other.first.rank && one.first.call.elements == other.first.call.elements &&
         one.differ == other.differ &&
         (one.differ == 0 ||
          (one.other.rank == other.other.rank && one.other.call.elements == other.other.call.elements));
}

}  // namespace

TEST_CASE("summaries of any sets of members, overlapping or not, join to the summary of their union") {
  for (std::size_t which = 0; which < 3 * 3 * 3 * 3; ++which) {
    const Calls calls{which % 3, which / 3 % 3, which / 9 % 3, which / 27};
    for (unsigned one = 1; one < 16; ++one)
      for (unsigned other = 1; other < 16; ++other) {
        CallSummary joined = summary(calls, one, false);
        joined.join(summary(calls, other, true));
        CHECK(same(joined, summary(calls, one | other, false)));
      }
  }
}

TEST_CASE("every member finds the lowest rank with a different call") {
  for (std::size_t which = 0; which < 3 * 3 * 3 * 3; ++which) {
    const Calls calls{which % 3, which / 3 % 3, which / 9 % 3, which / 27};
    const CallSummary all = summary(calls, 15, false);
    for (std::size_t rank = 0; rank < members; ++rank) {
      std::size_t expected = members;
      for (std::size_t peer = members; peer-- > 0;)
        if (calls[peer] != calls[rank]) expected = peer;
      const auto* const found = all.find_different(brought(rank, calls[rank]).first.call.fingerprint);
      CHECK((found == nullptr ? members : found->rank) == expected);
    }
  }
}

TEST_CASE("if all calls are equal, only the first one is sent") {
  const Calls calls{1, 1, 2, 1};
  const CallSummary same_calls = summary(calls, 3, false);
  CallSummary received{};
  std::memcpy(static_cast<void*>(&received), &same_calls, same_calls.bytes());
  CHECK(same_calls.bytes() < sizeof(CallSummary) * 6 / 10);
  CHECK(same(received, same_calls));
  CHECK(summary(calls, 7, false).bytes() == sizeof(CallSummary));
}
