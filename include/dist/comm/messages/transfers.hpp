#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>

namespace dist::detail {

/// Bytes per message, below the 4 MiB of spec H18. Smaller segments cost more than overlapping gains: between processes
/// of one machine, each segment needs a handshake.
inline constexpr std::size_t segment_bytes = std::size_t{1} << 20;
inline constexpr std::size_t receives_ahead = 4;
inline constexpr std::size_t sends_behind = 4;

/// Type-erased values in transit, so that code is shared by all types.
class Elements {
 public:
  template <class T>
  explicit Elements(std::span<T> values) noexcept : Elements(std::as_writable_bytes(values), sizeof(T)) {}
  Elements(std::span<std::byte> bytes, std::size_t size) noexcept : bytes_(bytes), size_(size) {}

  [[nodiscard]] std::size_t count() const noexcept { return bytes_.size() / size_; }
  /// The bytes per element.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t segments(std::size_t elements) const noexcept {
    return (elements + most_at_once() - 1) / most_at_once();
  }
  /// Returns segment `number` of a range; empty after its end.
  [[nodiscard]] IndexRange segment(IndexRange range, std::size_t number) const noexcept {
    const std::size_t begin = std::min(range.begin + number * most_at_once(), range.end);
    return {begin, std::min(begin + most_at_once(), range.end)};
  }
  [[nodiscard]] std::span<std::byte> bytes(IndexRange range) const noexcept {
    return bytes_.subspan(range.begin * size_, range.size() * size_);
  }

 private:
  [[nodiscard]] std::size_t most_at_once() const noexcept { return std::max<std::size_t>(segment_bytes / size_, 1); }

  std::span<std::byte> bytes_;
  std::size_t size_;
};

/// The last transfers in one direction: transfer n first waits for transfer n - size.
template <PassesMessages C, std::size_t size>
class InFlight {
 public:
  explicit InFlight(const C& comm) : comm_(comm) {}

  void receive(std::size_t number, std::span<std::byte> bytes, std::size_t from) {
    if (!bytes.empty()) start(number, comm_.start_receive(bytes, from));
  }
  void send(std::size_t number, std::span<const std::byte> bytes, std::size_t to) {
    wait(number);
    if (!bytes.empty()) start(number, comm_.start_send(bytes, to));
  }
  /// Waits for a transfer; empty segments are never sent.
  void wait(std::size_t number) {
    Slot& slot = slots_[number % size];
    if (!slot.used) return;
    comm_.wait(slot.transfer);
    slot.used = false;
  }
  void wait_for_all() {
    for (std::size_t number = 0; number < size; ++number) wait(number);
  }

 private:
  struct Slot {
    typename C::Transfer transfer{};
    bool used = false;
  };

  void start(std::size_t number, typename C::Transfer transfer) { slots_[number % size] = {transfer, true}; }

  const C& comm_;
  std::array<Slot, size> slots_{};
};

/// Sends `out` to member `to` while receiving `in` from member `from`; empty segments are not sent.
template <PassesMessages C>
void send_and_receive(const C& comm, std::span<const std::byte> out, std::size_t to, std::span<std::byte> in,
                      std::size_t from) {
  const auto segments = [](std::size_t bytes) { return (bytes + segment_bytes - 1) / segment_bytes; };
  const auto segment = [](auto bytes, std::size_t number) {
    const std::size_t begin = std::min(number * segment_bytes, bytes.size());
    return bytes.subspan(begin, std::min(segment_bytes, bytes.size() - begin));
  };
  const std::size_t sends = segments(out.size());
  const std::size_t receives = segments(in.size());
  InFlight<C, receives_ahead> incoming{comm};
  InFlight<C, sends_behind> outgoing{comm};
  for (std::size_t posted = 0, at = 0; at < std::max(sends, receives); ++at) {
    for (; posted < std::min(at + receives_ahead, receives); ++posted)
      incoming.receive(posted, segment(in, posted), from);
    outgoing.send(at, segment(out, at), to);
    incoming.wait(at);
  }
  outgoing.wait_for_all();
}
template <PassesMessages C>
void send(const C& comm, std::span<const std::byte> out, std::size_t to) {
  send_and_receive(comm, out, to, {}, comm.rank());
}
template <PassesMessages C>
void receive(const C& comm, std::span<std::byte> in, std::size_t from) {
  send_and_receive(comm, {}, comm.rank(), in, from);
}

}  // namespace dist::detail
