#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/device/wait.hpp>

namespace dist::detail {

/// Time spent waiting, from the end of the initial spin.
class MailboxWait {
 public:
  explicit MailboxWait(std::int64_t timeout) noexcept : timeout_(timeout) {}
  void begin() noexcept {
    if (start_ == 0) start_ = monotonic_nanoseconds();
  }
  /// True if it exceeds the timeout by more than `later` nanoseconds.
  [[nodiscard]] bool is_over(std::int64_t later = 0) const noexcept {
    return monotonic_nanoseconds() - start_ - later > timeout_;
  }

 private:
  std::int64_t timeout_;
  std::int64_t start_ = 0;
};

/// The meeting protocol of members that share memory, threads or processes: they announce calls, wait for each other,
/// and compare.
///
/// A Medium provides `size()`, `mailbox(rank, parity)` (two per member, used alternately), and `arrivals()`, the event
/// count on which all sleep. `takes_back` is true if members may give up. A mailbox starts with `sequence`, the atomic
/// number of its collective, and `fingerprint`, the hash that members compare. Data in the same cache line arrives with
/// it.
///
/// **A mailbox is free when it is filled again.** A member in collective n has seen that all have entered n - 1, so all
/// have left n - 2, and its mailbox for n - 2 has no more readers: it can be used for n. A member that leaves n before
/// all have entered it waits for them first.
///
/// **Reads match the announcement.** A member fills its mailbox, then stores `sequence` (release); peers load
/// `sequence` (acquire), then read.
///
/// **Either all continue or none does**, even if members give up. A member that gives up takes its announcement back,
/// and checks whether all others have arrived. A member that has seen all arrive checks all a second time. Operations
/// on `sequence` are sequentially consistent. If the announcement is taken back before the second check, the check
/// detects this. Otherwise all had arrived before, so the member that wanted to give up sees them and continues. Only
/// one member gives up at a time, so that a brief withdrawal is not mistaken for a departure. Only the second check
/// reads fingerprints, because then they cannot change. If members never give up, one check is enough.
template <class Medium>
class Mailboxes {
 public:
  /// The fingerprint of a failure that replaces a call.
  static constexpr std::uint64_t failure = 0x6d03c4e1b98f527aU;

  Mailboxes(Medium medium, SpinBudget budget) : medium_(static_cast<Medium&&>(medium)), budget_(budget) {}

  [[nodiscard]] const Medium& medium() const noexcept { return medium_; }
  [[nodiscard]] std::size_t size() const noexcept { return medium_.size(); }
  [[nodiscard]] auto& of(std::size_t rank, std::uint32_t sequence) const noexcept {
    return medium_.mailbox(rank, sequence % 2);
  }

  /// Announces that member `rank` has entered collective `sequence`; its mailbox must be filled.
  void announce(std::size_t rank, std::uint32_t sequence) const {
    of(rank, sequence).sequence.store(sequence);
    medium_.arrivals().notify([&] { return peers_arrived(rank, sequence); });
  }
  /// Announces that member `rank` does not enter collective `sequence`; its mailbox must have the failure.
  void announce_failure(std::size_t rank, std::uint32_t sequence) const {
    of(rank, sequence).sequence.store(sequence);
    medium_.arrivals().notify();
  }
  /// Takes an announcement back, calls `fail()` and announces the failure, unless all have arrived meanwhile. Returns
  /// true if it announced the failure. Only one member may call it at a time.
  template <class Fail>
  [[nodiscard]] bool fail_unless_all_came(std::size_t rank, std::uint32_t sequence, Fail&& fail) const {
    of(rank, sequence).sequence.store(sequence - 2);
    const bool all_came = peers_arrived(rank, sequence);
    if (all_came) {
      announce(rank, sequence);
    } else {
      fail();
      announce_failure(rank, sequence);
    }
    return !all_came;
  }

  [[nodiscard]] bool arrived(std::size_t peer, std::uint32_t sequence) const noexcept {
    return static_cast<std::int32_t>(of(peer, sequence).sequence.load() - sequence) >= 0;
  }
  [[nodiscard]] bool peers_arrived(std::size_t rank, std::uint32_t sequence) const noexcept {
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != rank && !arrived(peer, sequence)) return false;
    return true;
  }
  /// Waits shortly for `peer`, without sleeping and within the timeout of `wait`. `bytes` follow sequence and
  /// fingerprint.
  [[nodiscard]] bool arrives_soon(std::size_t peer, std::uint32_t sequence, MailboxWait& wait,
                                  std::size_t bytes = 0) const {
    constexpr unsigned eager = 100;  // without a pause: longer than a peer on its own core needs
    // Prefetching takes lines away from a peer that is still writing them: with all of 256 B, a call took 0.24 us
    // instead of 0.17.
    const std::size_t ahead = std::min(head + bytes, 3 * cache_line);
    const auto* const box = reinterpret_cast<const std::byte*>(&of(peer, sequence));
    for (unsigned spin = 0; spin < budget_.spins; ++spin) {
      // Fetch the rest with the line that announces it.
      for (std::size_t at = cache_line; at < ahead; at += cache_line) __builtin_prefetch(box + at);
      if (arrived(peer, sequence)) return true;
      if (spin >= eager) relax();
    }
    constexpr unsigned per_clock = 16;  // per look at the clock: other threads may keep the core for long
    wait.begin();
    for (unsigned yield = 0; yield < budget_.yields; ++yield) {
      if (arrived(peer, sequence)) return true;
      if (yield % per_clock == per_clock - 1 && wait.is_over()) return false;
      sched_yield();
    }
    return false;
  }
  /// Waits for `peer`, calling `look()` about every millisecond, which throws if the peer has failed or left.
  template <class Look>
  void await_slowly(std::size_t rank, std::size_t peer, std::uint32_t sequence, Look&& look) const {
    while (!arrived(peer, sequence)) {
      look();
      rest(rank, sequence);
    }
  }
  /// Sleeps until all peers have arrived or a notification, at most a millisecond.
  void rest(std::size_t rank, std::uint32_t sequence) const noexcept {
    constexpr std::int64_t millisecond = 1'000'000;
    medium_.arrivals().wait([&] { return peers_arrived(rank, sequence); }, millisecond);
  }

  /// Waits until all have entered collective `sequence`, which `rank` has announced. Returns true if all have the same
  /// `fingerprint`. Calls `slowly(peer, wait)` for a late peer, which must wait for it or throw, and `came(peer)` after
  /// each observed arrival.
  template <class Slowly, class Came>
  [[nodiscard]] bool meet(std::size_t rank, std::uint32_t sequence, std::uint64_t fingerprint, std::int64_t timeout,
                          std::size_t bytes, Slowly&& slowly, Came&& came) const {
    for (;;) {
      bool same = true;
      for (std::size_t peer = 0; peer < size(); ++peer) {
        if (peer == rank) continue;
        MailboxWait wait{timeout};
        if (!arrives_soon(peer, sequence, wait, bytes)) [[unlikely]]
          slowly(peer, wait);
        came(peer);
        if constexpr (!Medium::takes_back) same = same && of(peer, sequence).fingerprint == fingerprint;
      }
      if constexpr (!Medium::takes_back) return same;
      bool all = true;
      for (std::size_t peer = 0; peer < size() && all; ++peer) {
        if (peer == rank) continue;
        all = arrived(peer, sequence);
        same = same && (!all || of(peer, sequence).fingerprint == fingerprint);
      }
      if (all) return same;
    }
  }

 private:
  static constexpr std::size_t head = 16;  // sequence, a field before the fingerprint, and the fingerprint

  Medium medium_;
  SpinBudget budget_;
};

}  // namespace dist::detail
