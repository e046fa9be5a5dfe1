#include <dist/comm/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

struct Minimal {
  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return 1; }
  void barrier() const {}
};
struct Reclaiming : Minimal {
  void cancel_operands() const noexcept {}
};
struct ReclaimThrows : Minimal {
  void cancel_operands() const {}
};
struct NotCopyable : Minimal {
  NotCopyable() = default;
  NotCopyable(const NotCopyable&) = delete;
  NotCopyable& operator=(const NotCopyable&) = delete;
};
struct RankIsInt : Minimal {
  [[nodiscard]] int rank() const { return 0; }
};
struct SizeIsInt : Minimal {
  [[nodiscard]] int size() const { return 1; }
};
struct RankChangesIt : Minimal {
  [[nodiscard]] std::size_t rank() { return 0; }
};
struct SizeChangesIt : Minimal {
  [[nodiscard]] std::size_t size() { return 1; }
};
struct BarrierChangesIt : Minimal {
  void barrier() {}
};
struct NoRank {
  [[nodiscard]] std::size_t size() const { return 1; }
  void barrier() const {}
};
struct NoSize {
  [[nodiscard]] std::size_t rank() const { return 0; }
  void barrier() const {}
};
struct NoBarrier {
  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return 1; }
};

static_assert(dist::Communicator<Minimal>);
static_assert(!dist::Communicator<NotCopyable>);
static_assert(!dist::Communicator<RankIsInt>);
static_assert(!dist::Communicator<SizeIsInt>);
static_assert(!dist::Communicator<RankChangesIt>);
static_assert(!dist::Communicator<SizeChangesIt>);
static_assert(!dist::Communicator<BarrierChangesIt>);
static_assert(!dist::Communicator<NoRank>);
static_assert(!dist::Communicator<NoSize>);
static_assert(!dist::Communicator<NoBarrier>);

template <class Base>
struct Sharing : Base {
  void publish(const dist::CollectiveCall&, const dist::Operand&) const {}
  template <class T>
  [[nodiscard]] const T* peer(std::size_t) const {
    return nullptr;
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t) const {
    return nullptr;
  }
};
struct PublishesPointers : Sharing<Reclaiming> {
  template <class T>
  void publish(const dist::CollectiveCall&, T*, T* = nullptr) const {}
};
struct PublishChangesIt : Sharing<Reclaiming> {
  void publish(const dist::CollectiveCall&, const dist::Operand&) {}
};
struct NoPeer : Reclaiming {
  void publish(const dist::CollectiveCall&, const dist::Operand&) const {}
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t) const {
    return nullptr;
  }
};
struct ReadsToChange : Sharing<Reclaiming> {
  template <class T>
  [[nodiscard]] T* peer(std::size_t) const {
    return nullptr;
  }
};
struct SharesToRead : Sharing<Reclaiming> {
  template <class T>
  [[nodiscard]] const T* peer_to_write(std::size_t) const {
    return nullptr;
  }
};

static_assert(dist::SharesMemory<Sharing<Reclaiming>>);
static_assert(!dist::SharesMemory<Minimal>);
static_assert(!dist::SharesMemory<Sharing<Minimal>>);
static_assert(!dist::SharesMemory<Sharing<ReclaimThrows>>);
static_assert(!dist::SharesMemory<Sharing<NoBarrier>>);
static_assert(!dist::SharesMemory<PublishesPointers>);
static_assert(!dist::SharesMemory<PublishChangesIt>);
static_assert(!dist::SharesMemory<NoPeer>);
static_assert(!dist::SharesMemory<ReadsToChange>);
static_assert(!dist::SharesMemory<SharesToRead>);

template <class Base>
struct Exchanging : Base {
  static constexpr std::size_t exchange_capacity = 64;
  template <class T>
  void exchange(const dist::CollectiveCall&, std::span<const T>) const {}
  template <class T>
  [[nodiscard]] const T* received(std::size_t) const {
    return nullptr;
  }
};
struct NoCapacity : Reclaiming {
  template <class T>
  void exchange(const dist::CollectiveCall&, std::span<const T>) const {}
  template <class T>
  [[nodiscard]] const T* received(std::size_t) const {
    return nullptr;
  }
};
struct CapacityIsText : Exchanging<Minimal> {
  static constexpr const char* exchange_capacity = "64";
};
struct NoReceived : Reclaiming {
  static constexpr std::size_t exchange_capacity = 64;
  template <class T>
  void exchange(const dist::CollectiveCall&, std::span<const T>) const {}
};
struct ReceivesToChange : Exchanging<Minimal> {
  template <class T>
  [[nodiscard]] T* received(std::size_t) const {
    return nullptr;
  }
};
struct NoExchange : Reclaiming {
  static constexpr std::size_t exchange_capacity = 64;
  template <class T>
  [[nodiscard]] const T* received(std::size_t) const {
    return nullptr;
  }
};

static_assert(dist::ExchangesSmall<Exchanging<Minimal>>);
static_assert(!dist::ExchangesSmall<Exchanging<NoBarrier>>);
static_assert(!dist::ExchangesSmall<Minimal>);
static_assert(!dist::ExchangesSmall<NoCapacity>);
static_assert(!dist::ExchangesSmall<CapacityIsText>);
static_assert(!dist::ExchangesSmall<NoReceived>);
static_assert(!dist::ExchangesSmall<ReceivesToChange>);
static_assert(!dist::ExchangesSmall<NoExchange>);

}  // namespace

TEST_CASE("calls are equal if all their fields are (spec E12)") {
  const dist::CollectiveCall call{
      .operation = "all_reduce", .reduction = "sum", .elements = 8, .dtype = "f32", .root = 0, .counts = 7};
  const auto changed = [&](auto change) {
    dist::CollectiveCall other = call;
    change(other);
    return other;
  };
  CHECK(call == changed([](dist::CollectiveCall&) {}));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.operation = "broadcast"; }));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.reduction = "mean"; }));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.elements = 9; }));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.dtype = "i32"; }));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.root = 1; }));
  CHECK(call != changed([](dist::CollectiveCall& other) { other.counts = 8; }));
}

TEST_CASE("fingerprints differ for calls that differ in one or several fields") {
  static constexpr std::string_view names[] = {
      "all_reduce", "reduce_and_apply", "sum", "mean", "f32", "f64", "i32", ""};
  std::vector<std::uint64_t> seen;
  for (const std::string_view operation : names)
    for (const std::string_view reduction : names)
      for (const std::string_view dtype : names)
        for (const std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{4096}})
          for (const std::size_t root : {std::size_t{0}, std::size_t{1}})
            for (const std::uint64_t counts : {std::uint64_t{0}, std::uint64_t{1} << 63})
              seen.push_back(dist::CollectiveCall{operation, reduction, elements, dtype, root, counts}.fingerprint());
  CHECK(seen.front() == dist::CollectiveCall{names[0], names[0], 0, names[0], 0, 0}.fingerprint());
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}
