#include <dist/coordinator/remote_value.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::RemoteState;
using dist::RemoteValue;
using Result = dist::detail::RemoteResult;

template <class T>
RemoteValue<T> ready(const T& value) {
  auto result = std::make_shared<Result>();
  result->finish(dist::to_bytes(value));
  return RemoteValue<T>{result};
}
struct Loss {
  float value;
  std::string name;
};

}  // namespace

TEST_CASE("a RemoteValue waits for its result, and returns it every time (spec L08)") {
  auto result = std::make_shared<Result>();
  const RemoteValue<Loss> loss{result};
  const RemoteValue<Loss> copy = loss;
  CHECK(loss.state() == RemoteState::not_ready);
  CHECK_THROWS_AS(static_cast<void>(loss.fetch(5ms)), dist::DeadlineExceeded);
  std::thread worker([&] {
    std::this_thread::sleep_for(5ms);
    result->finish(dist::to_bytes(Loss{0.5f, "mean"}));
  });
  CHECK(loss.fetch().name == "mean");
  worker.join();
  result.reset();
  CHECK(copy.fetch(0ms).value == 0.5f);
  CHECK(copy.state() == RemoteState::ready);

  auto nothing = std::make_shared<Result>();
  const RemoteValue<void> done{nothing};
  nothing->finish({});
  CHECK_NOTHROW(done.fetch());
}

TEST_CASE("an empty RemoteValue and one with invalid bytes are rejected") {
  CHECK(support::what_throws([] { static_cast<void>(RemoteValue<int>{}.fetch()); }) ==
        "A RemoteValue has no function (it was made without one, and nothing was assigned to it). Assign the result of "
        "schedule.");
  auto result = std::make_shared<Result>();
  result->finish(std::vector<std::byte>(3));
  CHECK_THROWS_AS(RemoteValue<int>{result}.fetch(), dist::ArchiveError);
}

TEST_CASE("fetch replaces all RemoteValues in a structure, and keeps the rest (spec L07)") {
  CHECK(dist::fetch(7) == 7);
  CHECK(dist::fetch(ready(7)) == 7);
  CHECK(dist::fetch(std::vector{ready(1), ready(2)}) == std::vector{1, 2});
  CHECK(dist::fetch(std::array{ready(1), ready(2)}) == std::array{1, 2});
  CHECK(dist::fetch(std::pair{ready(std::string("a")), 2.5}) == std::pair{std::string("a"), 2.5});
  CHECK(dist::fetch(std::optional{ready(3)}) == std::optional{3});
  CHECK(dist::fetch(std::optional<RemoteValue<int>>{}) == std::nullopt);
  const auto nested = std::tuple{std::vector{std::pair{ready(1), 'x'}}, std::tuple{ready(std::vector{2, 3})}, 4};
  CHECK(dist::fetch(nested) == std::tuple{std::vector{std::pair{1, 'x'}}, std::tuple{std::vector{2, 3}}, 4});
  static_assert(dist::detail::holds_remote_value<decltype(nested)>());
  static_assert(!dist::detail::holds_remote_value<Loss>());

  auto failed = std::make_shared<Result>();
  failed->fail(RemoteState::failed, std::make_exception_ptr(std::out_of_range("no")));
  CHECK(support::what_throws<std::out_of_range>([&] {
          static_cast<void>(dist::fetch(std::vector{ready(1), RemoteValue<int>{failed}}));
        }) == "no");
}
