#include <dist/server/update.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/float16.hpp>
#include <dist/nn/optimizers/adam.hpp>

namespace {

namespace rpc = dist::rpc;
namespace server = dist::server;
using dist::server::DuplicateRows;

/// Counts the updates of an element in its slot.
template <class T>
struct Counting {
  static constexpr std::array<std::string_view, 1> slots{"count"};
  T rate;
  T operator()(T weight, T gradient, T* slot) const {
    slot[0] += T(1);
    return weight - rate * gradient;
  }
};

/// The direction is twice the sum of the gradients.
struct Directed {
  static constexpr std::array<std::string_view, 1> slots{"sum"};
  static constexpr bool has_two_passes = true;
  float rate;
  float decay;
  float scale = 1;
  float direction(float gradient, float* slot) const {
    slot[0] += gradient;
    return 2 * slot[0];
  }
  float operator()(float weight, float direction, float*) const {
    return weight * (1 - decay) - rate * scale * direction;
  }
};

template <class T>
struct Elements {
  std::vector<T> weights, slot;
  std::size_t row_size = 1;

  [[nodiscard]] server::ShardMemory memory() {
    return {dist::io::element_type<T>,
            weights.size(),
            row_size,
            reinterpret_cast<std::byte*>(weights.data()),
            {reinterpret_cast<std::byte*>(slot.data())}};
  }
};

/// The bytes of the values after `offset` others, in pieces of `size` bytes.
template <class T>
struct Cut {
  Cut(const std::vector<T>& values, std::size_t offset, std::size_t size) : bytes(offset + values.size() * sizeof(T)) {
    std::memcpy(bytes.data() + offset, values.data(), values.size() * sizeof(T));
    for (std::size_t at = offset; at < bytes.size(); at += size)
      pieces.push_back(rpc::Chunk{bytes}.subspan(at, std::min(size, bytes.size() - at)));
  }
  std::vector<std::byte> bytes;
  std::vector<rpc::Chunk> pieces;
};

template <class T>
rpc::Chunk piece_of(const std::vector<T>& values) {
  return std::as_bytes(std::span{values});
}

/// Encodes and decodes an update, as for another process.
template <class T, class F>
std::unique_ptr<server::ElementUpdateBase> sent(const F& update) {
  dist::ArchiveWriter writer;
  server::detail::TypedUpdate<F, T>{update}.write(writer);
  dist::ArchiveReader reader{writer.content()};
  auto read = server::detail::get_update(reader);
  reader.expect_end();
  return read;
}

static_assert(server::ServerUpdate<dist::Sum, float> && server::ServerUpdate<dist::detail::Assign, bool>);
static_assert(server::DirectedUpdate<Directed, float> && !server::DirectedUpdate<Counting<float>, float>);
static_assert(server::SlotsUpdate<dist::nn::Adam::Update<float, false>, float>);
static_assert(!server::ServerUpdate<std::string, float> && !server::ServerUpdate<Counting<float>, double>);

}  // namespace

TEST_CASE_TEMPLATE("values are applied with any division and alignment of their bytes", T, std::int8_t, std::int16_t,
                   dist::BFloat16, float, double) {
  const std::size_t count = 5000;
  std::vector<T> values(count), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = T(static_cast<int>(i % 100));
    expected[i] = T(static_cast<int>(i % 100) + 1);
  }
  const auto update = sent<T>(dist::sum);
  CHECK(update->type() == dist::io::element_type<T>);
  CHECK(update->slots() == 0);
  for (const std::size_t offset : {0u, 1u, 4u, 7u})
    for (const std::size_t size : {1u, 3u, 8u, 4095u, 4096u, 4100u, 100'000u}) {
      const Cut<T> cut{values, offset, size};
      Elements<T> elements{std::vector<T>(count, T(1)), {}};
      update->apply(elements.memory(), cut.pieces);
      CHECK(elements.weights == expected);
    }
}

TEST_CASE_TEMPLATE("one value is applied to all elements and their slots, with any division of its bytes", T,
                   std::int32_t, dist::BFloat16, double) {
  for (const std::size_t count : {0u, 1u, 5000u}) {
    const Cut<T> cut{{T(3)}, 1, 1};
    Elements<T> elements{std::vector<T>(count, T(10)), std::vector<T>(count, T(1))};
    sent<T>(Counting<T>{T(2)})->apply_uniform(elements.memory(), cut.pieces);
    CHECK(elements.weights == std::vector<T>(count, T(4)));
    CHECK(elements.slot == std::vector<T>(count, T(2)));
  }
}

TEST_CASE("a functor has its members and the shard's slots, like an optimizer's") {
  const dist::nn::Adam::Update<float, false> adam{0.1f, 0.1f, 0.001f, 1e-7f};
  const auto update = sent<float>(adam);
  CHECK(update->slots() == 2);
  std::vector<float> weights(100, 1), momentum(100), velocity(100), gradient(100);
  for (std::size_t i = 0; i < 100; ++i) gradient[i] = static_cast<float>(i) - 50;
  std::vector<float> expected = weights;
  for (std::size_t i = 0; i < 100; ++i) {
    float slots[2] = {0, 0};
    expected[i] = adam(expected[i], gradient[i], slots);
  }
  const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
  const rpc::Chunk piece = piece_of(gradient);
  update->apply({dist::io::ElementType::f32, 100, 1, bytes(weights), {bytes(momentum), bytes(velocity)}}, {&piece, 1});
  for (std::size_t i = 0; i < 100; ++i) CHECK(weights[i] == doctest::Approx(expected[i]));
  CHECK(momentum[0] == doctest::Approx(-5.0f));
  CHECK(velocity[0] == doctest::Approx(2.5f));
}

TEST_CASE("an update of two passes scales its directions by the norms of all weights and directions") {
  for (const bool decays : {false, true}) {
    const auto update = sent<float>(Directed{0.5F, decays ? 0.5F : 0.0F});
    CHECK(update->needs_all());
    Elements<float> elements{{3, 4}, {0, 0}};  // norm 5, or 2.5 after the decay
    const Cut<float> cut{{0.75F, 1}, 1, 3};    // directions of norm 2.5
    update->apply(elements.memory(), cut.pieces);
    CHECK(elements.weights == (decays ? std::vector<float>{0.75F, 1} : std::vector<float>{1.5F, 2}));
    CHECK(elements.slot == std::vector<float>{0.75F, 1});
  }
  CHECK_FALSE(sent<float>(dist::sum)->needs_all());
}

TEST_CASE("rows of the same index are applied in order, or summed and applied once") {
  const std::vector<std::int64_t> rows{2, 0, 2, 2};
  const std::vector<float> values{1, 2, 10, 20, 3, 4, 5, 6};
  for (const std::size_t size : {1u, 5u, 12u, 1000u}) {
    const Cut<float> cut{values, 1, size};
    const auto apply = [&](const auto& update, DuplicateRows repeats) {
      Elements<float> elements{std::vector<float>(6, 100), std::vector<float>(6, 0), 2};
      sent<float>(update)->apply_rows(elements.memory(), rows, cut.pieces, repeats);
      return elements;
    };
    CHECK(apply(dist::detail::Assign{}, DuplicateRows::in_order).weights == std::vector<float>{10, 20, 100, 100, 5, 6});
    CHECK(apply(dist::detail::Subtract{}, DuplicateRows::in_order).weights ==
          std::vector<float>{90, 80, 100, 100, 91, 88});
    CHECK(apply(dist::max, DuplicateRows::in_order).weights == std::vector<float>{100, 100, 100, 100, 100, 100});
    const Elements<float> one_by_one = apply(Counting<float>{0.5f}, DuplicateRows::in_order);
    CHECK(one_by_one.weights == std::vector<float>{95, 90, 100, 100, 95.5f, 94});
    CHECK(one_by_one.slot == std::vector<float>{1, 1, 0, 0, 3, 3});
    const Elements<float> at_once = apply(Counting<float>{0.5f}, DuplicateRows::summed);
    CHECK(at_once.weights == std::vector<float>{95, 90, 100, 100, 95.5f, 94});
    CHECK(at_once.slot == std::vector<float>{1, 1, 0, 0, 1, 1});
  }
  // Bools are assigned, and the last one wins.
  std::array<bool, 2> bools{true, true};
  const std::vector<std::int64_t> twice{1, 1};
  const std::vector<std::uint8_t> truths{1, 0};
  const rpc::Chunk of_truths = piece_of(truths);
  sent<bool>(dist::detail::Assign{})
      ->apply_rows({dist::io::ElementType::boolean, 2, 1, reinterpret_cast<std::byte*>(bools.data()), {}}, twice,
                   {&of_truths, 1}, DuplicateRows::summed);
  CHECK(bools == std::array<bool, 2>{true, false});
  // Sums of 16-bit numbers round once, in the given order: 256 + 1 + 1 is 258, although 256 + 1 is 256.
  Elements<dist::BFloat16> small{std::vector<dist::BFloat16>(1, dist::BFloat16(0.0f)), {}};
  const std::vector<std::int64_t> all{0, 0, 0};
  const std::vector<dist::BFloat16> parts{dist::BFloat16(256.0f), dist::BFloat16(1.0f), dist::BFloat16(1.0f)};
  const rpc::Chunk piece = piece_of(parts);
  sent<dist::BFloat16>(dist::sum)->apply_rows(small.memory(), all, {&piece, 1}, DuplicateRows::summed);
  CHECK(float{small.weights[0]} == 258.0f);
}

TEST_CASE("integers are not divided by 0, and only divisors are checked") {
  const auto refused = [](const auto& update, const auto& values) {
    const rpc::Chunk piece = piece_of(values);
    try {
      update->check({&piece, 1});
    } catch (const dist::StoreError& error) {
      return error.problem() == server::Problem::wrong_value;
    }
    return false;
  };
  CHECK(refused(sent<int>(dist::detail::Divide{}), std::vector<int>{1, 0}));
  CHECK_FALSE(refused(sent<int>(dist::detail::Divide{}), std::vector<int>{1, 2}));
  CHECK_FALSE(refused(sent<float>(dist::detail::Divide{}), std::vector<float>{0}));
  CHECK_FALSE(refused(sent<int>(dist::sum), std::vector<int>{0}));
}

TEST_CASE("elements of another type are not changed") {
  Elements<float> elements{{1, 2}, {}};
  const std::vector<double> values{1, 1};
  const rpc::Chunk piece = piece_of(values);
  try {
    sent<double>(dist::sum)->apply(elements.memory(), {&piece, 1});
    FAIL("nothing was thrown");
  } catch (const dist::StoreError& error) {
    CHECK(error.problem() == server::Problem::wrong_type);
  }
  CHECK(elements.weights == std::vector<float>{1, 2});
}

TEST_CASE("shards are filled by a function of ranges or of elements") {
  const auto fill = [](auto function, std::uint64_t first) {
    using F = decltype(function);
    dist::ArchiveWriter writer;
    writer.put(dist::FunctionTable<server::FillShard>::number<&server::detail::fill_shard<F, double>>()).put(function);
    dist::ArchiveReader reader{writer.content()};
    Elements<double> elements{std::vector<double>(3), {}};
    dist::FunctionTable<server::FillShard>::find(reader.get<dist::FunctionId>())(reader, first, elements.memory());
    return elements.weights;
  };
  CHECK(fill([](std::uint64_t i) { return static_cast<int>(i) * 2; }, 4) == std::vector<double>{8, 10, 12});
  CHECK(fill(
            [](std::uint64_t first, std::span<double> elements) {
              for (double& element : elements) element = static_cast<double>(first);
            },
            9) == std::vector<double>{9, 9, 9});
}
