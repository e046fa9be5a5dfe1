#include <dist/rpc/rpc.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;

rpc::Chunk bytes_of(std::string_view said) { return std::as_bytes(std::span{said}); }

template <class Fn>
rpc::Outcome outcome_of(Fn fn) {
  try {
    fn();
  } catch (...) {
    return rpc::outcome_of_exception();
  }
  return {};
}

struct OfUser {};

}  // namespace

TEST_CASE("pieces are joined in order, and copied only to memory of their size") {
  const std::vector<rpc::Chunk> pieces{bytes_of("ab"), {}, bytes_of("cde")};
  CHECK(rpc::size_of(pieces) == 5);
  const std::vector<std::byte> joined = rpc::joined(pieces);
  CHECK(std::string{reinterpret_cast<const char*>(joined.data()), joined.size()} == "abcde");
  CHECK(rpc::joined({}).empty());
  std::vector<std::byte> four(4);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] { rpc::copy(pieces, four); }) ==
        "A message of 5 bytes does not fit (the memory for it has 4). Give memory of exactly the message's size.");
}

TEST_CASE("an error names the call, the server, the reason and a suggestion, and its kind does not depend on text") {
  using enum rpc::Failure;
  const std::pair<rpc::Failure, std::string> expected[] = {
      {deadline,
       "Call 'push' to ps:1 received no reply in time (so). Give the call a longer timeout, or see what keeps the "
       "server busy."},
      {cancelled, "Call 'push' to ps:1 was cancelled (so). Call again if the result is wanted."},
      {lost,
       "Call 'push' to ps:1 did not reach the server, or lost its connection (so). Check whether the server still "
       "runs, listens at this address, and can be reached."},
      {refused,
       "Call 'push' to ps:1 was refused (so). Start all tasks of the job from one build, with the same "
       "DIST_JOB_SECRET, "
       "the same addresses, and certificates of the same authorities, or none."},
      {unknown_method,
       "Call 'push' to ps:1 names a method that the server does not have (so). Start all tasks of the job from one "
       "build."},
      {handler,
       "Call 'push' to ps:1 failed on the server with OfUser (so). Check the request that the server received."}};
  for (const auto& [failure, said] : expected) {
    const dist::RpcError error{"push", "ps:1", {failure, "so", "OfUser"}};
    CHECK(error.what() == said);
    CHECK(error.failure() == failure);
    CHECK(error.peer() == "ps:1");
    CHECK(error.why() == "so");
    CHECK(error.thrown() == "OfUser");
    CHECK(rpc::is_lost(error) == (failure == lost));
  }
  CHECK(rpc::to_string_view(unknown_method) == "unknown method");
}

TEST_CASE("an exception of a handler is described by its type and text") {
  const rpc::Outcome standard = outcome_of([] { throw std::range_error("too far"); });
  CHECK(standard.failure == rpc::Failure::handler);
  CHECK(standard.thrown == "std::range_error");
  CHECK(standard.why == "too far");
  const rpc::Outcome other = outcome_of([] { throw OfUser{}; });
  CHECK(other.thrown.ends_with("(anonymous namespace)::OfUser"));
  CHECK(other.why == "an exception that is not a std::exception");
}

TEST_CASE("methods are found by name, and listed if one is missing") {
  const std::vector<rpc::Method<int>> methods{{"pull", {}}, {"push", {}}};
  CHECK(rpc::find_method(methods, "push") == &methods[1]);
  CHECK(rpc::find_method(methods, "pus") == nullptr);
  CHECK(rpc::known_methods(methods) == "it has 'pull', 'push'");
  CHECK(rpc::known_methods(std::vector<rpc::Method<int>>{}) == "it has none");
}

TEST_CASE("a list of weak pointers drops expired ones") {
  std::vector<std::weak_ptr<int>> list;
  const auto kept = std::make_shared<int>(1);
  for (int i = 0; i < 10'000; ++i) {
    dist::detail::add_live(list, std::make_shared<int>(i));
    if (i % 1000 == 0) dist::detail::add_live(list, kept);
  }
  CHECK(list.size() < 100);
  CHECK(std::count_if(list.begin(), list.end(), [&](const auto& entry) { return entry.lock() == kept; }) == 10);
}
