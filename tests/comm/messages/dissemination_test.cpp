#include <dist/comm/messages/dissemination.hpp>

#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using dist::detail::Dissemination;

namespace {

std::vector<Dissemination> schedules(std::size_t members, std::size_t radix) {
  std::vector<Dissemination> all;
  for (std::size_t rank = 0; rank < members; ++rank) all.emplace_back(rank, members, radix);
  return all;
}

}  // namespace

TEST_CASE("after the last round every member knows of every one") {
  for (std::size_t number = 2; number < 2 * 71; ++number) {
    const std::size_t members = number / 2;
    const std::size_t radix = number % 2 == 0 ? 2 : 4;
    CAPTURE(members);
    CAPTURE(radix);
    const std::vector<Dissemination> all = schedules(members, radix);
    std::vector<std::set<std::size_t>> known(members);
    for (std::size_t rank = 0; rank < members; ++rank) known[rank] = {rank};
    for (std::size_t round = 0; round < all[0].rounds(); ++round) {
      const std::vector<std::set<std::size_t>> before = known;
      for (std::size_t rank = 0; rank < members; ++rank)
        for (std::size_t i = all[rank].begin(round); i < all[rank].end(round); ++i) {
          const std::size_t from = all[rank].from(i);
          CHECK(all[from].to(i) == rank);
          known[rank].insert(before[from].begin(), before[from].end());
          for (std::size_t below = 0; below < all[rank].speaks_for(i); ++below)
            CHECK(before[from].count((from + members - below) % members) == 1);
        }
    }
    for (const std::set<std::size_t>& each : known) CHECK(each.size() == members);
  }
}

TEST_CASE("no two partners are the same member") {
  for (std::size_t members = 1; members <= 300; ++members) {
    const Dissemination schedule{members / 3, members};
    std::set<std::size_t> to;
    std::set<std::size_t> from;
    for (std::size_t i = 0; i < schedule.partners(); ++i) {
      to.insert(schedule.to(i));
      from.insert(schedule.from(i));
    }
    CHECK(to.size() == schedule.partners());
    CHECK(from.size() == schedule.partners());
    CHECK(to.count(members / 3) + from.count(members / 3) == 0);
  }
}

TEST_CASE("a member sends at most 2 log2(P) messages, and up to four members one to each other") {
  for (std::size_t members = 1; members <= 5000; ++members) {
    CAPTURE(members);
    const std::size_t sent = Dissemination{0, members}.partners();
    CHECK(static_cast<double>(sent) <= 2 * std::log2(members));
    if (members <= 4) CHECK(sent == members - 1);
  }
  CHECK(Dissemination{0, 4}.rounds() == 1);
  CHECK(Dissemination{0, 1024}.rounds() == 5);
  CHECK(Dissemination{0, 1024}.partners() == 15);
}
