#include <dist/core/aligned_buffer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

using dist::AlignedBuffer;

TEST_CASE_TEMPLATE("a buffer is aligned to a cache line and initially zero", T, std::uint8_t, float, double,
                   std::int64_t) {
  for (const std::size_t size : {1U, 2U, 63U, 64U, 65U, 1000U}) {
    AlignedBuffer<T> buffer(size);
    CHECK(buffer.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % dist::cache_line == 0);
    std::size_t not_zero = 0;
    for (std::size_t i = 0; i < size; ++i) not_zero += static_cast<std::size_t>(buffer.data()[i] != T{0});
    CHECK(not_zero == 0);
    for (std::size_t i = 0; i < size; ++i) buffer.data()[i] = T{1};
    CHECK(std::as_const(buffer).data()[size - 1] == T{1});
  }
}

TEST_CASE("elements are value-initialised, including default member initialisers") {
  struct Pair {
    int left = 3;
    int right = 4;
  };
  const AlignedBuffer<Pair> buffer(5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(buffer.data()[i].left == 3);
    CHECK(buffer.data()[i].right == 4);
  }
}

TEST_CASE("an empty buffer owns no memory") {
  CHECK(AlignedBuffer<float>{}.data() == nullptr);
  CHECK(AlignedBuffer<float>{}.size() == 0);
  CHECK(AlignedBuffer<float>(0).data() == nullptr);
  CHECK(AlignedBuffer<float>(0).size() == 0);
}

TEST_CASE("moving a buffer transfers its memory and leaves an empty one") {
  AlignedBuffer<int> from(10);
  from.data()[9] = 99;
  int* const memory = from.data();
  AlignedBuffer<int> to(std::move(from));
  CHECK(to.data() == memory);
  CHECK(to.size() == 10);
  CHECK(to.data()[9] == 99);
  CHECK(from.data() == nullptr);
  CHECK(from.size() == 0);
}

TEST_CASE("move assignment replaces the memory, and self-assignment is harmless") {
  AlignedBuffer<int> from(10);
  AlignedBuffer<int> to(3);
  int* const memory = from.data();
  to = std::move(from);
  CHECK(to.data() == memory);
  CHECK(to.size() == 10);
  AlignedBuffer<int>& self = to;
  to = std::move(self);
  CHECK(to.data() == memory);
  CHECK(to.size() == 10);
}

TEST_CASE("a buffer is nothrow movable and not copyable") {
  static_assert(std::is_nothrow_move_constructible_v<AlignedBuffer<int>>);
  static_assert(std::is_nothrow_move_assignable_v<AlignedBuffer<int>>);
  static_assert(!std::is_copy_constructible_v<AlignedBuffer<int>>);
  static_assert(!std::is_copy_assignable_v<AlignedBuffer<int>>);
  CHECK(dist::cache_line == 64);
}

TEST_CASE("a size that overflows in bytes is rejected") {
  // Times 8 bytes this is 2^64 + 64, which wraps to 64.
  constexpr std::size_t wraps = (std::size_t{1} << 61) + 8;
  CHECK_THROWS_AS(AlignedBuffer<double>{wraps}, std::bad_array_new_length);
}
