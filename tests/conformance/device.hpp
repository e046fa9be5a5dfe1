// The suite of device types (dist/device/device.hpp). A type joins in its own test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(devices, dist::TheDevice);
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/device.hpp>

#include <doctest/doctest.h>

namespace conformance {

struct AddIndex {
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] += static_cast<float>(i); }
};
struct Double {
  const float* from;
  float* to;
  DIST_HD void operator()(std::size_t i) const { to[i] = 2 * from[i]; }
};
template <class T>
struct NumberAt {
  const T* values;
  DIST_HD T operator()(std::size_t i) const { return values[i]; }
};
struct Harmonic {
  DIST_HD float operator()(std::size_t i) const { return 1.0F / static_cast<float>(i + 1); }
};

/// A count, and the largest counted number.
struct Counted {
  std::size_t count, last, unused;
};
struct CountAndLast : dist::detail::IdentityFinish {
  using Record = Counted;
  template <std::same_as<Counted>>
  static constexpr Counted identity{0, 0, 0};
  DIST_HD Counted operator()(Counted a, Counted b) const {
    return {a.count + b.count, a.last < b.last ? b.last : a.last, 0};
  }
};
struct OneAt {
  DIST_HD Counted operator()(std::size_t i) const { return {1, i, 0}; }
};

/// Returns the devices of `replicas` replicas, placed like in a strategy.
template <class D>
std::vector<std::size_t> devices_of(std::size_t replicas) {
  const std::vector<std::size_t> placed = D::placement(replicas);
  std::vector<std::size_t> devices;
  for (std::size_t replica = 0; replica < replicas; ++replica) devices.push_back(placed[replica % placed.size()]);
  return devices;
}

/// Queues and memory of several replicas on devices of a type.
template <class D>
class Replicas {
 public:
  explicit Replicas(std::size_t replicas) : Replicas(devices_of<D>(replicas)) {}

  [[nodiscard]] typename D::Queue queue(std::size_t replica = 0) const {
    const typename D::Queue queue = queues_[replica];
    queue.enter();
    return queue;
  }
  [[nodiscard]] typename D::Memory& memory() { return memory_; }

  /// Allocates a slice of `elements` elements, for the lifetime of this object.
  template <class T>
  [[nodiscard]] std::size_t slice(std::size_t elements) {
    return memory_.allocate(elements * sizeof(T));
  }
  template <class T>
  [[nodiscard]] typename D::template Span<T> at(std::size_t replica, std::size_t slice, std::size_t elements) {
    return {reinterpret_cast<T*>(memory_.at(replica, slice)), elements};
  }
  /// Returns a copy of the elements in host memory.
  template <class T>
  [[nodiscard]] std::vector<T> read(std::size_t replica, std::size_t slice, std::size_t elements) {
    std::vector<T> values(elements);
    queue(replica).copy(at<T>(replica, slice, elements), std::span<T>{values});
    queue(replica).wait();
    return values;
  }

 private:
  explicit Replicas(const std::vector<std::size_t>& devices)
      : queues_(std::span<const std::size_t>{devices}), memory_(std::span<const std::size_t>{devices}) {}

  typename D::Queues queues_;
  typename D::Memory memory_;
};

inline constexpr std::array<std::size_t, 9> lengths{0, 1, 7, 8, 9, 255, 256, 257, 10'000};

inline std::vector<float> counted(std::size_t count, float from = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from + static_cast<float>(i);
  return values;
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("devices", D, devices) {
  SUBCASE("a device is counted, named and placed") {
    static_assert(dist::Device<D>);
    const std::size_t count = D::count();
    REQUIRE(count >= 1);
    CHECK(D::device_name(3) == "/" + std::string{D::type} + ":3");
    CHECK(D::placement(0).empty());
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, count, count + 3}) {
      const std::vector<std::size_t> placed = D::placement(replicas);
      CHECK(placed.size() >= 1);
      CHECK(placed.size() <= std::min(replicas, count));
      CHECK(std::set<std::size_t>(placed.begin(), placed.end()).size() == placed.size());
      for (const std::size_t device : placed) CHECK(device < count);
      const std::size_t threads = D::processors(conformance::devices_of<D>(replicas)).size();
      CHECK((threads == 0 || threads == replicas));
    }
  }

  SUBCASE("a slice is initially zero, has one offset for all replicas, and stores what is copied to it") {
    conformance::Replicas<D> replicas{3};
    CHECK(replicas.memory().replicas() == 3);
    for (const std::size_t count : conformance::lengths) {
      const std::size_t slice = replicas.template slice<float>(count);
      const std::size_t other = replicas.template slice<float>(count);
      for (std::size_t r = 0; r < 3; ++r) {
        CHECK(reinterpret_cast<std::uintptr_t>(replicas.memory().at(r, slice)) % 64 == 0);
        CHECK(replicas.template read<float>(r, slice, count) == std::vector<float>(count));
        const std::vector<float> values = conformance::counted(count, static_cast<float>(r));
        replicas.queue(r).copy(std::span<const float>{values}, replicas.template at<float>(r, slice, count));
        replicas.queue(r).wait();
      }
      for (std::size_t r = 0; r < 3; ++r) {
        CHECK(replicas.template read<float>(r, slice, count) == conformance::counted(count, static_cast<float>(r)));
        CHECK(replicas.template read<float>(r, other, count) == std::vector<float>(count));
      }
      replicas.memory().release(slice, count * sizeof(float));
      const std::size_t again = replicas.template slice<float>(count);
      for (std::size_t r = 0; r < 3; ++r)
        CHECK(replicas.template read<float>(r, again, count) == std::vector<float>(count));
    }
  }

  SUBCASE("a queue executes its work in order") {
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    static_assert(dist::Queue<typename D::Queue>);
    for (const std::size_t count : conformance::lengths) {
      const std::size_t a = replicas.template slice<float>(count);
      const std::size_t b = replicas.template slice<float>(count);
      const auto here = replicas.template at<float>(0, a, count);
      const auto there = replicas.template at<float>(0, b, count);
      queue.fill(here, 3.0F);
      queue.for_each({0, count}, conformance::AddIndex{here.data()});
      queue.for_each({0, count}, conformance::Double{here.data(), there.data()});
      queue.copy(there, here);
      queue.for_each({count / 2, count}, conformance::AddIndex{here.data()});
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i)
        expected[i] = 2 * (3 + static_cast<float>(i)) + (i >= count / 2 ? static_cast<float>(i) : 0);
      CHECK(replicas.template read<float>(0, a, count) == expected);
    }
  }

  SUBCASE("a queue reduces, with and without waiting") {
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    for (const std::size_t count : conformance::lengths) {
      const std::size_t slice = replicas.template slice<std::int64_t>(count);
      const std::size_t one = replicas.template slice<std::int64_t>(1);
      const auto here = replicas.template at<std::int64_t>(0, slice, count);
      std::vector<std::int64_t> values(count);
      std::int64_t total = 0;
      for (std::size_t i = 0; i < count; ++i) total += values[i] = static_cast<std::int64_t>(i * 7 % 1000) - 300;
      queue.copy(std::span<const std::int64_t>{values}, here);
      const conformance::NumberAt<std::int64_t> body{here.data()};
      CHECK(queue.transform_reduce(dist::sum, {0, count}, body) == total);
      if (count > 0) {
        CHECK(queue.transform_reduce(dist::max, {0, count}, body) == *std::max_element(values.begin(), values.end()));
        CHECK(queue.transform_reduce(dist::min, {0, count}, body) == *std::min_element(values.begin(), values.end()));
        CHECK(queue.transform_reduce(dist::sum, {1, count}, body) == total - values[0]);
      }
      queue.transform_reduce_to(dist::sum, {0, count}, body, replicas.template at<std::int64_t>(0, one, 1));
      CHECK(replicas.template read<std::int64_t>(0, one, 1)[0] == total);
      static_assert(std::is_same_v<decltype(queue.transform_reduce(dist::sum, {0, count}, body)), std::int64_t>);
    }
  }

  SUBCASE("an asynchronous reduction has its value when read, regardless of later work") {
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    constexpr std::size_t count = 1000;
    const std::size_t slice = replicas.template slice<float>(count);
    const auto here = replicas.template at<float>(0, slice, count);
    const conformance::NumberAt<float> body{here.data()};
    queue.fill(here, 1.0F);
    auto ones = queue.start_transform_reduce(dist::sum, {0, count}, body);
    static_assert(dist::Future<decltype(ones)>);
    queue.fill(here, 2.0F);
    const auto twos = queue.start_transform_reduce(dist::sum, {0, count}, body);
    queue.fill(here, 3.0F);
    static_cast<void>(queue.start_transform_reduce(dist::max, {0, count}, body));  // not read
    CHECK(twos.value() == 2000.0F);
    CHECK(ones.is_done());
    ones.wait();
    CHECK(ones.value() == 1000.0F);
    CHECK(ones.value() == 1000.0F);
  }

  SUBCASE("records are combined like numbers") {
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    for (const std::size_t count : conformance::lengths) {
      const auto counted = queue.transform_reduce(conformance::CountAndLast{}, {0, count}, conformance::OneAt{});
      CHECK(counted.count == count);
      CHECK(counted.last == (count == 0 ? 0 : count - 1));
    }
  }

  SUBCASE("reductions of the same range are bit-identical, and close to the exact sum") {
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    const conformance::Harmonic body;
    for (const std::size_t count : {3U, 8U, 1000U, 100'001U}) {
      const float first = queue.transform_reduce(dist::sum, {0, count}, body);
      for (int again = 0; again < 3; ++again) {
        const float next = queue.transform_reduce(dist::sum, {0, count}, body);
        CHECK(std::memcmp(&first, &next, sizeof first) == 0);
      }
      double harmonic = 0;
      for (std::size_t i = count; i > 0; --i) harmonic += 1.0 / static_cast<double>(i);
      // Each addition to a partial result rounds by at most 2^-24 of a partial sum.
      const double bound = harmonic * (static_cast<double>(count) / 8 + 16) * 0x1p-24;
      CHECK(std::abs(static_cast<double>(first) - harmonic) <= bound);
      const float mean = queue.transform_reduce(dist::mean, {0, count}, body);
      CHECK(std::abs(static_cast<double>(mean) - harmonic / static_cast<double>(count)) <= 2 * bound);
    }
  }

  SUBCASE("waiting for a queue completes its work") {
    static_assert(dist::Future<typename D::Queue>);
    conformance::Replicas<D> replicas{1};
    const auto queue = replicas.queue();
    const std::size_t slice = replicas.template slice<float>(1000);
    for (int round = 0; round < 2; ++round) {
      queue.fill(replicas.template at<float>(0, slice, 1000), 1.0f);
      queue.wait();
      CHECK(queue.is_done());
      queue.wait();
    }
  }

  SUBCASE("work of one queue follows an event of another") {
    conformance::Replicas<D> replicas{2};
    constexpr std::size_t count = 1000;
    const std::size_t slice = replicas.template slice<float>(count);
    const auto first = replicas.queue(0);
    const auto second = replicas.queue(1);
    const auto of_first = replicas.template at<float>(0, slice, count);
    const auto of_second = replicas.template at<float>(1, slice, count);
    typename D::Queue::Event written{first};
    typename D::Queue::Event copied{second};
    second.wait_for(copied);  // never recorded, so it is complete
    for (int round = 1; round <= 3; ++round) {
      replicas.queue(0).fill(of_first, static_cast<float>(round));
      first.record(written);
      replicas.queue(1).wait_for(written);
      second.copy(of_first, of_second);
      second.record(copied);
      replicas.queue(0).wait_for(copied);
      first.fill(of_first, -1.0F);
      CHECK(replicas.template read<float>(1, slice, count) == std::vector<float>(count, static_cast<float>(round)));
    }
    CHECK(replicas.template read<float>(0, slice, count) == std::vector<float>(count, -1.0F));
  }

  SUBCASE("the type of a device's span contains the location of its elements") {
    using Span = typename D::template Span<float>;
    static_assert(std::is_same_v<Span, dist::SpanIn<float, typename D::Space>>);
    static_assert(std::is_convertible_v<Span, typename D::template Span<const float>>);
    static_assert(!std::is_convertible_v<typename D::template Span<const float>, Span>);
    static_assert(std::is_same_v<Span, std::span<float>> == D::Space::host_accessible);
    conformance::Replicas<D> replicas{1};
    const std::size_t slice = replicas.template slice<float>(10);
    const Span span = replicas.template at<float>(0, slice, 10);
    CHECK(span.size() == 10);
    CHECK(!span.empty());
    CHECK(span.size_bytes() == 40);
    CHECK(span.subspan(4).size() == 6);
    CHECK(span.subspan(4).data() == span.data() + 4);
    CHECK(span.subspan(4, 2).size() == 2);
    CHECK(span.first(3).size() == 3);
    CHECK(Span{}.empty());
    const auto queue = replicas.queue();
    queue.fill(span, 1.0F);
    queue.fill(span.subspan(4, 2), 5.0F);
    CHECK(replicas.template read<float>(0, slice, 10) == std::vector<float>{1, 1, 1, 1, 5, 5, 1, 1, 1, 1});
  }
}
