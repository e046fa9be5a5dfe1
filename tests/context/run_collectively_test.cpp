#include <dist/context/run_collectively.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/comm/failure_notice.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/strategy/default.hpp>

namespace {

/// Records the messages of a process to the others.
struct Communicator {
  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return 2; }
  void barrier() const {}
  void begin_call() const { said->push_back("a call"); }

  std::vector<std::string>* said;
};
struct Workers {
  void begin_attempt() const noexcept { said->push_back("an attempt"); }
  void cancel(const dist::FailureNotice& notice) const noexcept {
    try {
      notice.raise(0, "here");
    } catch (const dist::PeerError& error) {
      said->push_back(std::string{error.what()}.find("no data") != std::string::npos ? "no data" : "something");
    }
  }
  void cancel(const std::exception_ptr&) const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }
  [[nodiscard]] Workers with_timeout(std::chrono::nanoseconds) const {
    said->push_back("as long as is asked");
    return *this;
  }
  [[nodiscard]] Communicator communicator() const { return {said}; }
  void broadcast(std::size_t root, std::span<std::uint64_t> values) const {
    said->push_back(dist::concat("member ", root, " has ", values[0]));
    values[0] += 30;  // as if the first process had another value
  }

  std::vector<std::string>* said;
};
/// Counts the turns that threads hold.
struct Turn {
  explicit Turn(int& turns) : held(turns) { ++held; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { --held; }

  int& held;
};
int turns_held = 0;
struct Replicas {
  [[nodiscard]] Turn take_turn() const { return Turn{turns_held}; }
};
struct Strategy {
  [[nodiscard]] Replicas replicas_part() const { return {}; }
  [[nodiscard]] Workers workers() const { return {said}; }
  [[nodiscard]] bool is_chief() const { return first == 0; }

  std::vector<std::string>* said;
  std::size_t first = 0;
};

using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("a call of the processes takes a turn, begins an attempt, and outside runs a call") {
  Said said;
  const Strategy strategy{&said};
  CHECK(dist::detail::run_collectively(strategy, [] { return turns_held; }) == 1);
  CHECK(turns_held == 0);
  CHECK(said == Said{"an attempt", "a call"});
  said.clear();
  const dist::detail::RunGuard merging{{.strategy = &strategy, .is_merging = true}};
  dist::detail::run_collectively(strategy, [] {});
  CHECK(said == Said{"an attempt"});
}

TEST_CASE("a process that cannot make the call sends the others the reason") {
  Said said;
  const Strategy strategy{&said};
  CHECK_THROWS_AS(dist::detail::run_collectively(strategy, [] { throw std::runtime_error("no data"); }),
                  std::runtime_error);
  CHECK(said.back() == "no data");
  CHECK_THROWS_AS(dist::detail::run_collectively(strategy, [] { throw 7; }), int);
  CHECK(said.back() == "something");
}

TEST_CASE("the processes wait for each other for the timeout of the options") {
  Said said;
  const Strategy strategy{&said};
  dist::CommunicationOptions options;
  CHECK(dist::detail::run_collectively(strategy, options, [](const auto&) { return 1; }) == 1);
  CHECK(said.back() == "a call");
  options.timeout = std::chrono::seconds{3};
  CHECK(dist::detail::run_collectively(strategy, options, [](const auto&) { return 2; }) == 2);
  CHECK(said.back() == "as long as is asked");
}

TEST_CASE("all processes have the first process's number") {
  Said said;
  CHECK(dist::detail::broadcast_from_chief(Strategy{&said}, [] { return 4U; }) == 34);
  CHECK(said.back() == "member 0 has 4");
  CHECK(dist::detail::broadcast_from_chief(Strategy{&said, 1}, []() -> std::uint64_t { throw 7; }) == 30);
  CHECK(said.back() == "member 0 has 0");
}

TEST_CASE("with one process calls are made directly") {
  const dist::Default strategy;
  CHECK(dist::detail::run_collectively(strategy, [] { return 6; }) == 6);
  CHECK(dist::detail::broadcast_from_chief(strategy, [] { return 7U; }) == 7);
  const std::same_as<bool> auto is_so = dist::detail::broadcast_from_chief(strategy, [] { return true; });
  CHECK(is_so);
}
