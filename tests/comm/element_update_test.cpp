#include <dist/comm/element_update.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>
#include <dist/core/reduce_op.hpp>

using dist::ElementUpdate;
using dist::IndexRange;
using dist::Pack;
using dist::PackUpdate;

namespace {

/// Stores its arguments in memory that it points to.
struct Recording {
  float* kept;
  float operator()(std::size_t i, float weight, float gradient) const {
    kept[i] += gradient;
    return weight - gradient * static_cast<float>(i + 1);
  }
};
struct RecordingPacks : Recording {
  int* packs;
  Pack<float> pack(std::size_t i, Pack<float> weights, Pack<float> gradients) const {
    ++*packs;
    Pack<float> all = Pack<float>::load(kept + i);
    for (std::size_t lane = 0; lane < 4; ++lane) {
      all.element[lane] += gradients.element[lane];
      weights.element[lane] -= gradients.element[lane] * static_cast<float>(i + lane + 1);
    }
    all.store(kept + i);
    return weights;
  }
};
/// Adds 1 below element 10, 100 below 20, else 1000.
struct InParts {
  struct Part {
    float term;
    float operator()(std::size_t, float weight, float) const { return weight + term; }
  };
  int* parts;
  float operator()(std::size_t i, float weight, float) const { return weight + (i < 10 ? 1 : i < 20 ? 100 : 1000); }
  template <class Visit>
  void for_each_part(IndexRange range, Visit&& visit) const {
    constexpr std::array<std::size_t, 4> bounds{0, 10, 20, 1000};
    constexpr std::array<float, 3> terms{1, 100, 1000};
    for (std::size_t part = 0; part < 3; ++part) {
      const IndexRange within{std::max(bounds[part], range.begin), std::min(bounds[part + 1], range.end)};
      if (within.begin >= within.end) continue;
      ++*parts;
      visit(Part{terms[part]}, within);
    }
  }
};

struct OfTwo {
  float operator()(float weight, float) const { return weight; }
};
struct Widening {
  double operator()(std::size_t, float weight, float) const { return double{weight}; }
};
struct Changing {
  float operator()(std::size_t, float weight, float) { return weight; }
};
struct Owning {
  std::vector<float> slots;
  float operator()(std::size_t, float weight, float) const { return weight; }
};

static_assert(ElementUpdate<Recording, float> && !PackUpdate<Recording, float>);
static_assert(ElementUpdate<RecordingPacks, float> && PackUpdate<RecordingPacks, float>);
static_assert(!ElementUpdate<OfTwo, float>);
static_assert(!ElementUpdate<Widening, float>);
static_assert(!ElementUpdate<Changing, float>);
static_assert(!ElementUpdate<Owning, float>);
static_assert(dist::UpdateOfParts<InParts> && !dist::UpdateOfParts<Recording>);
static_assert(dist::UpdateOfParts<dist::detail::ShiftedUpdate<InParts>>);
static_assert(sizeof(Pack<float>) == 16 && sizeof(Pack<double>) == 16 && alignof(Pack<std::uint8_t>) == 16);
static_assert(dist::pack_elements<float> == 4 && dist::pack_elements<double> == 2);

[[nodiscard]] std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7);
  return values;
}

}  // namespace

TEST_CASE("a block is updated element by element, with indices from the given first one") {
  for (const std::size_t count : {0U, 1U, 15U, 16U, 100U}) {
    std::vector<float> weights(count, 50);
    const std::vector<float> gradients = numbers(count);
    std::vector<float> kept(1000 + count);
    dist::detail::update_range(Recording{kept.data()}, 1000, std::span{weights}, std::span<const float>{gradients});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i)
      wrong += kept[1000 + i] != gradients[i] || weights[i] != 50 - gradients[i] * static_cast<float>(1001 + i);
    CHECK(wrong == 0);
  }
}

TEST_CASE("weights and gradients may be the same memory") {
  std::vector<float> weights = numbers(37);
  dist::detail::update_range([](std::size_t, float weight, float gradient) { return weight + 2 * gradient; }, 0,
                             std::span{weights}, std::span<const float>{weights});
  const std::vector<float> before = numbers(37);
  for (std::size_t i = 0; i < weights.size(); ++i) CHECK(weights[i] == 3 * before[i]);
}

TEST_CASE("an update of parts selects each part once, also when shifted") {
  int parts = 0;
  const auto check = [&](const auto& update, std::size_t first, std::size_t counted_from, int expected_parts) {
    std::vector<float> weights(30, 5);
    const std::vector<float> gradients(30);
    parts = 0;
    dist::detail::update_range(update, first, std::span{weights}, std::span<const float>{gradients});
    CHECK(parts == expected_parts);
    for (std::size_t i = 0; i < weights.size(); ++i) CHECK(weights[i] == InParts{&parts}(counted_from + i, 5.0f, 0.0f));
  };
  const InParts update{&parts};
  check(update, 0, 0, 3);
  check(update, 5, 5, 3);
  check(update, 12, 12, 2);
  check(dist::detail::ShiftedUpdate<InParts>{update, 7}, 4, 11, 2);
}

TEST_CASE("a shifted update counts from its offset") {
  std::vector<float> kept(10);
  const Recording update{kept.data()};
  CHECK(dist::detail::ShiftedUpdate<Recording>{update, 4}(3, 100.0f, 2.0f) == 100 - 2 * 8);
  CHECK(kept[7] == 2);
}

TEST_CASE("packs use the vectorised update if there is one, with the same result") {
  alignas(16) std::array<float, 8> one_by_one{};
  alignas(16) std::array<float, 8> at_once{};
  int packs = 0;
  const Pack<float> weights{{10, 20, 30, 40}};
  const Pack<float> gradients{{1, 2, 3, 4}};
  const Pack<float> first = dist::updated_pack(Recording{one_by_one.data()}, 4, weights, gradients);
  CHECK(packs == 0);
  const Pack<float> second = dist::updated_pack(RecordingPacks{{at_once.data()}, &packs}, 4, weights, gradients);
  CHECK(packs == 1);
  for (std::size_t lane = 0; lane < 4; ++lane) {
    CHECK(first.element[lane] == weights.element[lane] - gradients.element[lane] * static_cast<float>(5 + lane));
    CHECK(second.element[lane] == first.element[lane]);
  }
  CHECK(one_by_one == std::array<float, 8>{0, 0, 0, 0, 1, 2, 3, 4});
  CHECK(at_once == one_by_one);
}

namespace {
/// Memory that counts as inaccessible from the host; its queue works synchronously.
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
struct QueueOfLoops {
  template <class Body>
  void for_each(IndexRange range, const Body& body) const {
    for (std::size_t i = range.begin; i < range.end; ++i) body(i);
  }
};
}  // namespace

TEST_CASE("a queue updates whole aligned packs at once, and other elements one by one") {
  for (const std::size_t skew : {0U, 1U})
    for (const std::size_t count : {0U, 1U, 4U, 7U, 8U, 13U}) {
      CAPTURE(skew);
      CAPTURE(count);
      alignas(16) std::array<float, 16> weights{}, gradients{};
      alignas(16) std::array<float, 16> kept{};
      int packs = 0;
      for (std::size_t i = 0; i < 16; ++i) gradients[i] = static_cast<float>(i % 3 + 1);
      dist::detail::update_on(QueueOfLoops{}, RecordingPacks{{kept.data()}, &packs},
                              dist::DeviceSpan<float, Elsewhere>{weights.data() + skew, count},
                              dist::DeviceSpan<const float, Elsewhere>{gradients.data() + skew, count});
      CHECK(static_cast<std::size_t>(packs) == (skew == 0 ? count / 4 : 0));
      for (std::size_t i = 0; i < 16; ++i) {
        const bool is_changed = i >= skew && i < skew + count;
        CHECK(weights[i] == (is_changed ? -gradients[i] * static_cast<float>(i - skew + 1) : 0));
      }
      for (std::size_t i = 0; i < count; ++i) CHECK(kept[i] == gradients[i + skew]);
    }
}
