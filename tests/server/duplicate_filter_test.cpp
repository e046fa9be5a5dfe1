#include <dist/server/duplicate_filter.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

using dist::rpc::NonceFilter;
using dist::server::DuplicateFilter;
using dist::server::Pushed;
using dist::server::detail::RequestHeader;

namespace {

using Told = std::vector<Pushed>;

/// Pushes that count executions and repetitions.
struct Pushes {
  Told push(std::uint64_t number, const Told& becomes, std::uint64_t client = 7) {
    return callers.once(
        RequestHeader{1, client, number},
        [&] {
          ++done;
          return becomes;
        },
        [&] {
          ++again;
          return Told{{100, 0}};
        });
  }

  DuplicateFilter callers;
  int done = 0, again = 0;
};

const Told applied{{3, 1}}, refused{{3, 1}, {5, 4, false}};

}  // namespace

TEST_CASE("a request is executed once for each client and number") {
  DuplicateFilter callers;
  int done = 0;
  const auto once = [&](std::uint64_t client, std::uint64_t number) {
    callers.once(RequestHeader{1, client, number}, [&] { ++done; });
  };
  once(7, 1);
  once(7, 1);
  CHECK(done == 1);
  once(8, 1);
  once(7, 2);
  CHECK(done == 3);
  CHECK_THROWS_AS(once(0, 1), dist::ArchiveError);
  CHECK_THROWS_AS(once(7, 0), dist::ArchiveError);
}

TEST_CASE("a failed request counts as not executed") {
  DuplicateFilter callers;
  int tried = 0;
  const auto once = [&] {
    callers.once(RequestHeader{1, 7, 1}, [&] {
      if (++tried == 1) throw std::runtime_error("no");
    });
  };
  CHECK_THROWS_AS(once(), std::runtime_error);
  once();
  once();
  CHECK(tried == 2);
}

TEST_CASE("a repeated push returns its results if a part was rejected, otherwise the current state") {
  Pushes pushes;
  CHECK(pushes.push(1, applied) == applied);
  CHECK(pushes.push(2, refused) == refused);
  CHECK(pushes.push(1, applied) == Told{{100, 0}});
  CHECK(pushes.push(2, applied) == refused);
  CHECK(pushes.push(2, applied, 8) == applied);  // another client
  CHECK(pushes.done == 3);
  CHECK(pushes.again == 1);
}

TEST_CASE("requests older than the filter's window are rejected, and removed") {
  Pushes pushes;
  pushes.push(1, refused);
  pushes.push(1 + NonceFilter::width, refused);
  CHECK_THROWS_WITH_AS(pushes.push(1, applied), doctest::Contains("A request is too old (it is number 1 of its client"),
                       dist::StoreError);
  pushes.push(2 + NonceFilter::width, refused);
  CHECK(pushes.push(1 + NonceFilter::width, applied) == refused);
}

TEST_CASE("only the client that was silent for longest is removed") {
  Pushes pushes;
  pushes.push(1, applied, 1);
  pushes.push(1, applied, 2);
  pushes.push(1, applied, 1);
  for (std::uint64_t client = 3; client < 2 + DuplicateFilter::most; ++client) pushes.push(1, applied, client);
  const int done = pushes.done;
  CHECK(pushes.push(1, applied, 1) == Told{{100, 0}});
  CHECK(pushes.push(1, applied, 2) == applied);
  CHECK(pushes.done == done + 1);
}
