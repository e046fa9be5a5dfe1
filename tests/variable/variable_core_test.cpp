#include <dist/variable/variable_core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/arena.hpp>

#include <doctest/doctest.h>

namespace {

template <class T>
class Slice : public dist::detail::VariableCore<dist::Arena> {
 public:
  Slice(std::shared_ptr<dist::Arena> memory, std::size_t elements)
      : VariableCore(std::move(memory), dist::Shape{elements}, "slice", sizeof(T)) {}
  [[nodiscard]] std::span<T> on(std::size_t replica) const { return VariableCore::on<T, dist::HostMemory>(replica); }
};
using FloatSlice = Slice<float>;

}  // namespace

static_assert(std::is_nothrow_move_constructible_v<FloatSlice> && std::is_nothrow_move_assignable_v<FloatSlice>);
static_assert(!std::is_copy_constructible_v<FloatSlice> && !std::is_copy_assignable_v<FloatSlice>);

TEST_CASE("a slice is zero on every replica, in separate memory") {
  const auto arena = std::make_shared<dist::Arena>(3, std::size_t{1} << 20);
  const FloatSlice slice{arena, 1000};
  CHECK(slice.memory() == arena);
  CHECK(slice.shape() == dist::Shape{1000});
  CHECK(slice.name() == "slice");
  CHECK(slice.size() == 1000);
  for (std::size_t replica = 0; replica < 3; ++replica) {
    const auto elements = slice.on(replica);
    REQUIRE(elements.size() == 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(elements.data()) % 64 == 0);
    CHECK(std::count(elements.begin(), elements.end(), 0.0f) == 1000);
    std::fill(elements.begin(), elements.end(), static_cast<float>(replica + 1));
  }
  for (std::size_t replica = 0; replica < 3; ++replica)
    CHECK(std::count(slice.on(replica).begin(), slice.on(replica).end(), static_cast<float>(replica + 1)) == 1000);
}

TEST_CASE("slices of one arena do not overlap") {
  const auto arena = std::make_shared<dist::Arena>(2, std::size_t{1} << 20);
  const FloatSlice first{arena, 1025};
  const FloatSlice second{arena, 1};
  const Slice<double> third{arena, 700};
  std::fill(first.on(1).begin(), first.on(1).end(), 1.0f);
  std::fill(third.on(1).begin(), third.on(1).end(), 3.0);
  CHECK(second.on(1)[0] == 0.0f);
  second.on(1)[0] = 2.0f;
  CHECK(std::count(first.on(1).begin(), first.on(1).end(), 1.0f) == 1025);
  CHECK(std::count(third.on(1).begin(), third.on(1).end(), 3.0) == 700);
}

TEST_CASE("a slice frees its memory, and the next one starts with zeros") {
  constexpr std::size_t capacity = std::size_t{1} << 20;
  const auto arena = std::make_shared<dist::Arena>(2, capacity);
  for (int repetition = 0; repetition < 100; ++repetition) {
    const FloatSlice all{arena, capacity / sizeof(float)};
    REQUIRE(all.on(1)[0] == 0.0f);
    REQUIRE(all.on(1)[all.size() - 1] == 0.0f);
    all.on(1)[0] = all.on(1)[all.size() - 1] = 1.0f;
  }
}

TEST_CASE("a full arena throws and is unchanged") {
  constexpr std::size_t capacity = std::size_t{1} << 20;
  const auto arena = std::make_shared<dist::Arena>(1, capacity);
  const FloatSlice half{arena, capacity / sizeof(float) / 2};
  half.on(0)[0] = 5.0f;
  CHECK_THROWS_AS((FloatSlice{arena, capacity / sizeof(float)}), dist::OutOfMemory);
  CHECK(half.on(0)[0] == 5.0f);
  const FloatSlice rest{arena, capacity / sizeof(float) / 2};
  CHECK(rest.on(0)[0] == 0.0f);
}

TEST_CASE("moving transfers the memory; assigning frees the old memory at the end") {
  constexpr std::size_t capacity = std::size_t{1} << 20;
  const auto arena = std::make_shared<dist::Arena>(1, capacity);
  {
    FloatSlice first{arena, capacity / sizeof(float) / 2};
    first.on(0)[0] = 1.0f;
    FloatSlice moved{std::move(first)};
    CHECK(moved.on(0)[0] == 1.0f);
    FloatSlice second{arena, 10};
    second.on(0)[0] = 2.0f;
    second = std::move(moved);
    CHECK(second.on(0)[0] == 1.0f);
    CHECK(second.size() == capacity / sizeof(float) / 2);
  }
  const FloatSlice all{arena, capacity / sizeof(float)};
  CHECK(all.on(0)[0] == 0.0f);
}

TEST_CASE("a slice keeps its arena alive") {
  auto arena = std::make_shared<dist::Arena>(1, std::size_t{1} << 20);
  const std::weak_ptr<dist::Arena> watched = arena;
  {
    const FloatSlice slice{arena, 100};
    arena.reset();
    CHECK(!watched.expired());
    slice.on(0)[99] = 1.0f;
  }
  CHECK(watched.expired());
}

TEST_CASE("a slice without elements is valid") {
  const auto arena = std::make_shared<dist::Arena>(2, std::size_t{1} << 16);
  const FloatSlice empty{arena, 0};
  CHECK(empty.on(1).empty());
}

TEST_CASE("a size that overflows in bytes is rejected without an allocation") {
  constexpr std::size_t capacity = std::size_t{1} << 16;
  const auto arena = std::make_shared<dist::Arena>(2, capacity);
  // Times 4 bytes this is 2^64 + 4, which wraps to 4.
  CHECK_THROWS_AS((FloatSlice{arena, (std::size_t{1} << 62) + 1}), dist::OutOfMemory);
  const FloatSlice all{arena, capacity / sizeof(float)};
  CHECK(all.size() == capacity / sizeof(float));
}
