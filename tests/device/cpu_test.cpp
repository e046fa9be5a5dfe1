#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <conformance/device.hpp>
#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/topology.hpp>
#include <support/temporary_folder.hpp>

using dist::Cpu;
using dist::IndexRange;

namespace {

constexpr Cpu::Queue queue;

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(devices, Cpu);

TEST_CASE("for_each visits every index of a range exactly once") {
  for (const IndexRange range :
       {IndexRange{0, 0}, IndexRange{5, 5}, IndexRange{0, 1}, IndexRange{3, 20}, IndexRange{0, 40}}) {
    std::vector<int> visits(40, 0);
    queue.for_each(range, [&](std::size_t i) { ++visits[i]; });
    for (std::size_t i = 0; i < 40; ++i) CHECK(visits[i] == (i >= range.begin && i < range.end ? 1 : 0));
  }
}

TEST_CASE("a reduction agrees with arithmetic for every range, including ragged and empty ones") {
  std::size_t wrong = 0;
  for (std::uint64_t begin = 0; begin <= 20; ++begin)
    for (std::uint64_t end = begin; end <= 60; ++end) {
      const IndexRange range{begin, end};
      const std::uint64_t count = end - begin;
      const std::uint64_t expected = count == 0 ? 0 : (begin + end - 1) * count / 2;
      if (queue.transform_reduce(dist::sum, range, [](std::size_t i) { return std::uint64_t{i}; }) != expected) ++wrong;
      if (count == 0) continue;
      const auto distance = [](std::size_t i) { return std::abs(static_cast<double>(i) - 30.0); };
      const auto low = static_cast<double>(begin);
      const auto last = static_cast<double>(end - 1);
      const double nearest = low > 30 ? low - 30 : last < 30 ? 30 - last : 0;
      if (queue.transform_reduce(dist::max, range, distance) != std::max(std::abs(low - 30), std::abs(last - 30)))
        ++wrong;
      if (queue.transform_reduce(dist::min, range, distance) != nearest) ++wrong;
      const auto twice = [](std::size_t i) { return 2.0 * static_cast<double>(i); };
      // Sums of small integers are exact, so both sides round once, in the division.
      if (queue.transform_reduce(dist::mean, range, twice) !=
          2.0 * static_cast<double>(expected) / static_cast<double>(count))
        ++wrong;
    }
  CHECK(wrong == 0);
}

TEST_CASE("a product includes all indices") {
  for (std::size_t count = 1; count <= 20; ++count) {
    std::uint64_t factorial = 1;
    for (std::size_t i = 1; i <= count; ++i) factorial *= i;
    CHECK(queue.transform_reduce(dist::prod, {1, count + 1}, [](std::size_t i) { return std::uint64_t{i}; }) ==
          factorial);
  }
}

TEST_CASE("a reduction of an empty range is the identity, and its mean is NaN") {
  const auto number = [](std::size_t i) { return static_cast<float>(i); };
  CHECK(queue.transform_reduce(dist::sum, {4, 4}, number) == 0.0F);
  CHECK(queue.transform_reduce(dist::prod, {4, 4}, number) == 1.0F);
  CHECK(queue.transform_reduce(dist::min, {4, 4}, number) == HUGE_VALF);
  CHECK(queue.transform_reduce(dist::max, {4, 4}, number) == -HUGE_VALF);
  CHECK(std::isnan(queue.transform_reduce(dist::mean, {4, 4}, number)));
}

TEST_CASE("the body is called once per index") {
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 64U, 100U}) {
    std::vector<int> visits(count, 0);
    static_cast<void>(queue.transform_reduce(dist::sum, {0, count}, [&](std::size_t i) { return ++visits[i]; }));
    CHECK(std::all_of(visits.begin(), visits.end(), [](int each) { return each == 1; }));
  }
}

TEST_CASE("a reduction is reproducible, and close to the exact sum") {
  const auto body = [](std::size_t i) { return 1.0F / static_cast<float>(i + 1); };
  for (const std::size_t count : {3U, 8U, 1000U, 100'001U}) {
    const float first = queue.transform_reduce(dist::sum, {0, count}, body);
    for (int again = 0; again < 3; ++again) {
      const float next = queue.transform_reduce(dist::sum, {0, count}, body);
      CHECK(std::memcmp(&first, &next, sizeof first) == 0);
    }
    double harmonic = 0;
    for (std::size_t i = count; i > 0; --i) harmonic += 1.0 / static_cast<double>(i);
    // Each addition of a partial result rounds by at most 2^-24 of a partial sum.
    const double bound = harmonic * (static_cast<double>(count) / 8 + 16) * 0x1p-24;
    CHECK(std::abs(static_cast<double>(first) - harmonic) <= bound);
  }
}

TEST_CASE_TEMPLATE("16-bit floating-point values are combined as floats and rounded once", T, dist::Float16,
                   dist::BFloat16) {
  const auto one = [](std::size_t) { return T{1}; };
  static_assert(std::is_same_v<decltype(queue.transform_reduce(dist::sum, {}, one)), T>);
  // A running sum in the type itself would stop at 2^11 or 2^8.
  CHECK(queue.transform_reduce(dist::sum, {0, 40'960}, one) == 40'960);
  // The sum and the count exceed the largest f16.
  CHECK(queue.transform_reduce(dist::mean, {0, 100'000}, one) == 1);
  CHECK(queue.transform_reduce(dist::mean, {0, 9}, [](std::size_t i) { return T(60'000 + i); }) == T(60'000));
  CHECK(queue.transform_reduce(dist::prod, {0, 3}, [](std::size_t i) { return T(i == 2 ? 0x1p-12 : 0x1p10); }) == 256);
  CHECK(queue.transform_reduce(dist::max, {0, 50}, [](std::size_t i) { return T(i); }) == 49);
  CHECK(queue.transform_reduce(dist::min, {3, 50}, [](std::size_t i) { return T(i); }) == 3);
  CHECK(std::isnan(float{queue.transform_reduce(dist::mean, {4, 4}, one)}));
}

TEST_CASE("a NaN at any index makes minimum and maximum NaN") {
  for (std::size_t at = 0; at < 19; ++at) {
    const auto body = [&](std::size_t i) {
      return i == at ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i);
    };
    CHECK(std::isnan(queue.transform_reduce(dist::max, {0, 19}, body)));
    CHECK(std::isnan(queue.transform_reduce(dist::min, {0, 19}, body)));
  }
}

TEST_CASE("bool values are combined logically") {
  for (const std::size_t special : {0U, 5U, 16U}) {
    const auto all_but_one = [&](std::size_t i) { return i != special; };
    const auto only_one = [&](std::size_t i) { return i == special; };
    CHECK(queue.transform_reduce(dist::bit_and, {0, 17}, all_but_one) == false);
    CHECK(queue.transform_reduce(dist::min, {0, 17}, all_but_one) == false);
    CHECK(queue.transform_reduce(dist::bit_and, {special + 1, 18}, all_but_one) == true);
    CHECK(queue.transform_reduce(dist::bit_or, {0, 17}, only_one) == true);
    CHECK(queue.transform_reduce(dist::max, {0, 17}, only_one) == true);
    CHECK(queue.transform_reduce(dist::bit_or, {special + 1, 18}, only_one) == false);
    CHECK(queue.transform_reduce(dist::bit_xor, {0, 17}, only_one) == true);
    CHECK(queue.transform_reduce(dist::bit_xor, {0, 17}, all_but_one) == false);
  }
}

TEST_CASE("integers are combined bitwise") {
  const auto bit = [](std::size_t i) { return std::uint32_t{1} << i; };
  CHECK(queue.transform_reduce(dist::bit_or, {0, 20}, bit) == (1U << 20) - 1);
  CHECK(queue.transform_reduce(dist::bit_xor, {3, 20}, bit) == (1U << 20) - 8);
  CHECK(queue.transform_reduce(dist::bit_and, {0, 20}, [&](std::size_t i) { return ~bit(i); }) == ~((1U << 20) - 1));
}

TEST_CASE("the result has the return type of the body") {
  const float number = 2;
  static_assert(
      std::is_same_v<
          decltype(queue.transform_reduce(dist::sum, {}, [&](std::size_t) -> const float& { return number; })), float>);
  static_assert(
      std::is_same_v<decltype(queue.transform_reduce(dist::sum, {}, [](std::size_t) { return std::uint8_t{1}; })),
                     std::uint8_t>);
  CHECK(queue.transform_reduce(dist::sum, {0, 300}, [](std::size_t) { return std::uint8_t{1}; }) == 300 - 256);
}

TEST_CASE("replicas are placed in the order of the topology, one per device") {
  const std::vector<std::size_t> order = dist::placement_order(dist::read_topology(dist::allowed_processors()));
  const std::size_t count = Cpu::count();
  REQUIRE(order.size() == count);
  CHECK(Cpu::placement(count) == order);
  CHECK(Cpu::placement(1) == std::vector<std::size_t>{order.front()});
  CHECK(Cpu::placement(count + 3) == order);
  CHECK(Cpu::placement(0).empty());
}

TEST_CASE("processors are counted and named") {
  CHECK(Cpu::count() == dist::allowed_processors().size());
  CHECK(Cpu::count() >= 1);
  CHECK(Cpu::device_name(0) == "/cpu:0");
  CHECK(Cpu::device_name(12) == "/cpu:12");
  CHECK(Cpu::name == "Cpu");
}

TEST_CASE("the queue of a processor and the strategy's queue state are empty") {
  static_assert(std::is_empty_v<Cpu::Queue> && std::is_empty_v<Cpu::Queues> && std::is_empty_v<Cpu::Queue::Event>);
  static_assert(std::is_same_v<Cpu::Span<float>, std::span<float>>);
}

TEST_CASE("replicas are bound to their processors, unless they share one") {
  const std::vector<std::size_t> allowed = dist::allowed_processors();
  const std::vector<std::size_t> devices = Cpu::placement(Cpu::count());
  const std::vector<std::size_t> processors = Cpu::processors(devices);
  REQUIRE(processors.size() == devices.size());
  for (std::size_t replica = 0; replica < devices.size(); ++replica)
    CHECK(processors[replica] == allowed[devices[replica]]);
  CHECK(Cpu::processors(std::vector<std::size_t>{0, 1, 0}).empty());
  CHECK(Cpu::processors({}).empty());
}

TEST_CASE("a quota below the processor count limits the default replicas, and threads stay unbound") {
  const support::TemporaryFolder root;
  const auto limit = [&](const std::string& quota) {
    for (const char* const folder : {"/proc/self", "/sys/fs/cgroup"})
      std::filesystem::create_directories(root.path() + folder);
    std::ofstream{root.path() + "/proc/self/cgroup"} << "0::/\n";
    std::ofstream{root.path() + "/sys/fs/cgroup/cpu.max"} << quota << '\n';
  };
  const std::size_t all = Cpu::count();
  CHECK(Cpu::most_at_once(root.path()) == all);
  limit("100000 100000");
  CHECK(Cpu::most_at_once(root.path()) == 1);
  CHECK(Cpu::processors(std::vector<std::size_t>{0}, root.path()).size() == (all == 1 ? 1 : 0));
  limit(dist::concat(2 * all, "00000 100000"));
  CHECK(Cpu::most_at_once(root.path()) == all);
  CHECK(Cpu::processors(std::vector<std::size_t>{0}, root.path()).size() == 1);
}
