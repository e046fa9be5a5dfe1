#include <dist/comm/memory_collectives.hpp>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <dist/core/duration.hpp>

#include <doctest/doctest.h>

namespace {

/// Records its calls.
struct Recorder {
  std::vector<std::string>* calls;

  [[nodiscard]] std::size_t rank() const noexcept { return 0; }
  [[nodiscard]] std::size_t size() const noexcept { return 2; }
  void barrier() const noexcept {}
  void begin_attempt() const noexcept { calls->push_back("begin_attempt"); }
  void cancel(const dist::FailureNotice&) const noexcept { calls->push_back("cancel(notice)"); }
  void cancel(const std::exception_ptr&) const noexcept { calls->push_back("cancel(exception)"); }
  [[nodiscard]] bool is_broken() const noexcept {
    calls->push_back("is_broken");
    return true;
  }
  [[nodiscard]] Recorder with_timeout(std::chrono::nanoseconds) const { return *this; }
};

struct Policy : dist::Membership<Recorder> {
  using Membership::Membership;
  [[nodiscard]] Policy with_timeout(std::chrono::nanoseconds timeout) const {
    return Policy{comm_.with_timeout(timeout)};
  }
};
static_assert(dist::ReportsFailures<Recorder> && dist::ReportsFailures<Policy>);
static_assert(!dist::ReportsFailures<dist::Membership<Recorder>>);

}  // namespace

TEST_CASE("the collectives of a policy report failures by their communicator") {
  std::vector<std::string> calls;
  const Policy policy{Recorder{&calls}};
  CHECK(policy.communicator().size() == 2);
  policy.begin_attempt();
  policy.cancel("the disk is full");
  policy.cancel(std::make_exception_ptr(std::runtime_error{"the disk is full"}));
  CHECK(policy.is_broken());
  CHECK(calls == std::vector<std::string>{"begin_attempt", "cancel(notice)", "cancel(exception)", "is_broken"});
}
