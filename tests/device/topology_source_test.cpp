#include <dist/device/topology_source.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include <dist/device/topology.hpp>

namespace {

/// Two cores of two threads, under one cache, of which the second core computes half as much.
struct FastAndSlow {
  static dist::detail::ProcessorList core(std::size_t processor) {
    return dist::detail::ProcessorList{processor < 2 ? "0-1" : "2-3"};
  }
  static dist::detail::ProcessorList cache(std::size_t) { return dist::detail::ProcessorList{"0-3"}; }
  static dist::detail::ProcessorList node(std::size_t) { return dist::detail::ProcessorList{""}; }
  static dist::detail::ProcessorList package(std::size_t) { return dist::detail::ProcessorList{""}; }
  static std::size_t capacity(std::size_t processor) { return processor < 2 ? 1024 : 512; }
};

}  // namespace

TEST_CASE("a list of processors is read as the kernel writes it, anything else is an empty list") {
  const dist::detail::ProcessorList list{"0-3,8,10-11"};
  for (std::size_t processor = 0; processor < 14; ++processor)
    CHECK(list.has(processor) == (processor <= 3 || processor == 8 || processor == 10 || processor == 11));
  CHECK(dist::detail::ProcessorList{"5"}.has(5));
  for (const char* text : {"", " ", "x", "-", "-1", "1-", "3-1", "1,", ",1", "1,,2", "0-3 ", "0x1", "1;2", "1-2-3",
                           "+1", "99999999999999999999", "0-99999999999999999999", "1,x"}) {
    CAPTURE(text);
    CHECK(dist::detail::ProcessorList{text}.ranges().empty());
  }
}

TEST_CASE("what a source knows names what processors share, and what it does not know is shared by all") {
  constexpr std::array<std::size_t, 4> processors{0, 1, 2, 3};
  const dist::Topology expected{{0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 1}, {2, 2, 0, 0, 0, 0}, {3, 2, 0, 0, 0, 0}};
  CHECK(dist::detail::topology_from(processors, FastAndSlow{}) == expected);
}
