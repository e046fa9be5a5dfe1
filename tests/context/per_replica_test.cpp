#include <dist/context/per_replica.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "support/stderr_of.hpp"

using dist::PerReplica;

namespace {

/// A value that counts its live instances.
struct Counted {
  static inline int alive = 0;
  std::size_t number = 0;

  Counted() { ++alive; }
  explicit Counted(std::size_t value) : number(value) { ++alive; }
  Counted(const Counted& other) : number(other.number) { ++alive; }
  Counted(Counted&& other) noexcept : number(std::exchange(other.number, 777)) { ++alive; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() { --alive; }
};

/// A value whose copy throws when the countdown reaches zero.
struct Fragile : Counted {
  static inline int copies_left = 1'000;

  using Counted::Counted;
  Fragile(const Fragile& other) : Counted(other) {
    if (--copies_left == 0) throw std::runtime_error("this copy fails");
  }
  Fragile& operator=(const Fragile&) = default;
};

template <class T>
bool in_place(const PerReplica<T>& values) {
  const auto object = reinterpret_cast<std::uintptr_t>(&values);
  const auto element = reinterpret_cast<std::uintptr_t>(values.begin());
  return element >= object && element < object + sizeof values;
}

PerReplica<Counted> numbered(std::size_t count) {
  return PerReplica<Counted>(count, [](std::size_t i) { return Counted(10 * i); });
}

}  // namespace

TEST_CASE("a default PerReplica is empty") {
  const PerReplica<int> values{};
  CHECK(values.size() == 0);
  CHECK(values.begin() == values.end());
  CHECK(values.values().empty());
  CHECK(PerReplica<int>(0).size() == 0);
}

TEST_CASE("value i belongs to local replica i (spec F01)") {
  for (const std::size_t count : {1U, 2U, 7U, 8U, 9U, 64U}) {
    PerReplica<std::size_t> values(count, [](std::size_t i) { return i * i; });
    CHECK(values.size() == count);
    std::size_t i = 0;
    for (const std::size_t value : values) {
      CHECK(value == i * i);
      ++i;
    }
    CHECK(i == count);
    values[count - 1] = 5;
    CHECK(std::as_const(values)[count - 1] == 5);
    CHECK(values.values().size() == count);
    CHECK(values.values().data() == values.begin());
  }
}

TEST_CASE("an index out of range breaks a contract") {
  const auto ending = testing::stderr_of([] {
    const dist::PerReplica<int> values(2);
    static_cast<void>(values[2]);
  });
  CHECK(ending.aborted);
  CHECK(ending.says(": local_replica < size()\n"));
  CHECK(!testing::stderr_of([] { static_cast<void>(dist::PerReplica<int>(2)[1]); }).aborted);
}

TEST_CASE("values are value-initialised") {
  for (const std::size_t count : {3U, 12U}) {
    const PerReplica<double> zeros(count);
    for (const double value : zeros) CHECK(value == 0.0);
    const PerReplica<std::string> texts(count);
    for (const std::string& value : texts) CHECK(value.empty());
  }
}

TEST_CASE("up to eight values are stored inline, more on the heap") {
  for (std::size_t count = 1; count <= 8; ++count) CHECK(in_place(PerReplica<std::string>(count)));
  CHECK(!in_place(PerReplica<std::string>(9)));
  struct alignas(128) Wide {
    float number = 0;
  };
  for (const std::size_t count : {2U, 20U}) {
    const PerReplica<Wide> wide(count);
    CHECK(reinterpret_cast<std::uintptr_t>(wide.begin()) % 128 == 0);
  }
}

TEST_CASE("a copy has its own values, and all are destroyed") {
  for (const std::size_t count : {0U, 3U, 8U, 9U, 20U}) {
    {
      PerReplica<Counted> original = numbered(count);
      CHECK(Counted::alive == static_cast<int>(count));
      const PerReplica<Counted> copy(original);
      CHECK(Counted::alive == static_cast<int>(2 * count));
      for (Counted& each : original) each.number = 1;
      for (std::size_t i = 0; i < count; ++i) CHECK(copy[i].number == 10 * i);
    }
    CHECK(Counted::alive == 0);
  }
}

TEST_CASE("a move takes the values, and all are destroyed") {
  for (const std::size_t count : {0U, 3U, 8U, 9U, 20U}) {
    {
      PerReplica<Counted> from = numbered(count);
      const PerReplica<Counted> to(std::move(from));
      CHECK(to.size() == count);
      for (std::size_t i = 0; i < count; ++i) CHECK(to[i].number == 10 * i);
      from = numbered(2);
      CHECK(from.size() == 2);
      CHECK(from[1].number == 10);
    }
    CHECK(Counted::alive == 0);
  }
}

TEST_CASE("a move of heap values keeps their addresses") {
  PerReplica<Counted> from = numbered(9);
  const Counted* const place = from.begin();
  const PerReplica<Counted> to(std::move(from));
  CHECK(to.begin() == place);
  CHECK(from.size() == 0);
}

TEST_CASE("assignment replaces the values, for all storage kinds, and from itself") {
  for (const std::size_t before : {0U, 3U, 12U})
    for (const std::size_t after : {0U, 5U, 15U}) {
      {
        PerReplica<Counted> target = numbered(before);
        const PerReplica<Counted> source = numbered(after);
        target = source;
        CHECK(target.size() == after);
        CHECK(Counted::alive == static_cast<int>(2 * after));
        const PerReplica<Counted>& self = target;
        target = self;
        CHECK(target.size() == after);
        for (std::size_t i = 0; i < after; ++i) CHECK(target[i].number == 10 * i);
        target = numbered(before);
        CHECK(target.size() == before);
        for (std::size_t i = 0; i < before; ++i) CHECK(target[i].number == 10 * i);
      }
      CHECK(Counted::alive == 0);
    }
}

TEST_CASE("an exception while values are created destroys the created ones") {
  for (const std::size_t count : {4U, 8U, 11U}) {
    const auto make = [&](std::size_t i) {
      if (i + 1 == count) throw std::runtime_error("the last one fails");
      return Counted(i);
    };
    CHECK_THROWS_WITH_AS((PerReplica<Counted>(count, make)), "the last one fails", std::runtime_error);
    CHECK(Counted::alive == 0);
  }
}

TEST_CASE("an exception in a copy leaves both sides unchanged") {
  for (const std::size_t count : {4U, 11U}) {
    {
      PerReplica<Fragile> source(count, [](std::size_t i) { return Fragile(i); });
      PerReplica<Fragile> target(2, [](std::size_t i) { return Fragile(100 + i); });
      Fragile::copies_left = 3;
      CHECK_THROWS_AS(target = source, std::runtime_error);
      Fragile::copies_left = 1'000;
      CHECK(Counted::alive == static_cast<int>(count + 2));
      CHECK(target.size() == 2);
      CHECK(target[1].number == 101);
      CHECK(source[count - 1].number == count - 1);
    }
    CHECK(Counted::alive == 0);
  }
}

TEST_CASE("values may be of a move-only or immovable type") {
  PerReplica<std::unique_ptr<int>> pointers(3,
                                            [](std::size_t i) { return std::make_unique<int>(static_cast<int>(i)); });
  const PerReplica<std::unique_ptr<int>> moved(std::move(pointers));
  CHECK(*moved[2] == 2);
  struct Fixed {
    explicit Fixed(std::size_t value) : number(value) {}
    Fixed(const Fixed&) = delete;
    std::size_t number;
  };
  const PerReplica<Fixed> fixed(10, [](std::size_t i) { return Fixed(i); });
  CHECK(fixed[9].number == 9);
}

TEST_CASE("moving is noexcept if moving a value is") {
  static_assert(std::is_nothrow_move_constructible_v<PerReplica<int>>);
  static_assert(std::is_nothrow_move_constructible_v<PerReplica<std::string>>);
  static_assert(!std::is_nothrow_move_constructible_v<PerReplica<Fragile>>);
  CHECK(std::is_nothrow_move_constructible_v<PerReplica<Counted>>);
}

TEST_CASE("is_per_replica recognises PerReplica") {
  static_assert(dist::is_per_replica<PerReplica<int>> && dist::is_per_replica<PerReplica<PerReplica<int>>>);
  static_assert(!dist::is_per_replica<int> && !dist::is_per_replica<PerReplica<int>*>);
  CHECK(std::is_same_v<PerReplica<float>::Value, float>);
}

TEST_CASE("per-replica values are created from values, compared and printed") {
  const auto values = PerReplica<float>::of(1, 2.5);
  CHECK(values == PerReplica<float>(2, [](std::size_t i) { return i == 0 ? 1.0f : 2.5f; }));
  CHECK(values != PerReplica<float>::of(1));
  CHECK(values != PerReplica<float>::of(1, 3));
  CHECK(to_string(values) == "[1, 2.5]");
  CHECK(PerReplica<std::string>::of("a", std::string(2, 'b'))[1] == "bb");
  CHECK(PerReplica<int>::of(1, 2, 3, 4, 5, 6, 7, 8, 9)[8] == 9);
  CHECK(PerReplica<int>::of().size() == 0);
  CHECK(to_string(PerReplica<PerReplica<int>>::of(PerReplica<int>::of(1), PerReplica<int>::of())) == "[[1], []]");
}
