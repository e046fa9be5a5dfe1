#include <dist/device/copies_of_scope.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include <dist/device/cpu.hpp>

namespace {

struct Delaying {
  std::uint64_t* put;
  std::optional<std::uint64_t>* dropped_since;

  [[nodiscard]] std::uint64_t copies() const noexcept { return *put; }
  void drop_copies(std::uint64_t since) const noexcept { *dropped_since = since; }
};

}  // namespace

static_assert(dist::DelaysCopies<Delaying>);
static_assert(!dist::DelaysCopies<dist::Cpu::Queue>);

TEST_CASE("copies are dropped where an exception ends the scope in which they were put, and not before that scope") {
  std::uint64_t put = 3;
  std::optional<std::uint64_t> dropped;
  const Delaying queue{&put, &dropped};
  { const dist::CopiesOfScope<Delaying> copies{queue}; }
  CHECK(!dropped);
  const auto fail = [&] {
    const dist::CopiesOfScope<Delaying> copies{queue};
    put = 5;
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(dropped == 3);
}

TEST_CASE("a scope within one that an exception ends is not ended by that exception") {
  std::uint64_t put = 0;
  std::optional<std::uint64_t> dropped;
  struct AtTheEnd {
    Delaying queue;
    ~AtTheEnd() { const dist::CopiesOfScope<Delaying> copies{queue}; }
  };
  const auto fail = [&] {
    const AtTheEnd last{{&put, &dropped}};
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(!dropped);
}
