#include <dist/core/memory_space.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

#include <doctest/doctest.h>

namespace {

struct Elsewhere {
  static constexpr bool host_accessible = false;
};
struct Nowhere {};

}  // namespace

TEST_CASE("a memory space defines whether the host can access it") {
  CHECK(dist::MemorySpace<dist::HostMemory>);
  CHECK(dist::MemorySpace<Elsewhere>);
  CHECK(!dist::MemorySpace<Nowhere>);
  CHECK(!dist::MemorySpace<int>);
}

TEST_CASE("a span of host-accessible elements is a std::span") {
  CHECK(std::is_same_v<dist::SpanIn<int, dist::HostMemory>, std::span<int>>);
  CHECK(std::is_same_v<dist::SpanIn<const int, Elsewhere>, dist::DeviceSpan<const int, Elsewhere>>);
}

TEST_CASE("a device span has subspans and an address, and does not convert to a host span") {
  using Span = dist::DeviceSpan<int, Elsewhere>;
  int elements[6] = {};
  constexpr std::size_t count = 6;
  const Span span{elements, count};
  CHECK(span.data() == elements);
  CHECK(span.size() == count);
  CHECK(span.size_bytes() == count * sizeof(int));
  CHECK(span.subspan(2).data() == elements + 2);
  CHECK(span.subspan(2).size() == 4);
  CHECK(span.subspan(2, 3).size() == 3);
  CHECK(span.subspan(6).empty());
  CHECK(span.first(1).size() == 1);
  CHECK(Span{}.empty());
  CHECK(Span{}.data() == nullptr);
  const dist::DeviceSpan<const int, Elsewhere> constant = span;
  CHECK(constant.data() == elements);
  CHECK(!std::is_convertible_v<dist::DeviceSpan<const int, Elsewhere>, Span>);
  CHECK(!std::is_convertible_v<Span, std::span<int>>);
  CHECK(!std::is_convertible_v<std::span<int>, Span>);
  CHECK(std::is_trivially_copyable_v<Span>);
}
