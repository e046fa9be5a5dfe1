#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/device/wait.hpp>

namespace dist::detail {

/// The time that a member has waited, counted from when the short wait without a look at the clock is over.
class MailboxWait {
 public:
  explicit MailboxWait(std::int64_t timeout) noexcept : timeout_(timeout) {}
  void begin() noexcept {
    if (start_ == 0) start_ = monotonic_nanoseconds();
  }
  /// Whether it is longer than the timeout, by `later` nanoseconds.
  [[nodiscard]] bool is_over(std::int64_t later = 0) const noexcept {
    return monotonic_nanoseconds() - start_ - later > timeout_;
  }

 private:
  std::int64_t timeout_;
  std::int64_t start_ = 0;
};

/// How members of a group that reach each other's memory announce what they come with to a collective, wait for each
/// other and compare, whether they are threads or processes.
///
/// A Medium says where the mailboxes lie: it has `size()`, `mailbox(rank, parity)`, of which each member has two, used in
/// turn, and `arrivals()`, the event count where all sleep; `takes_back` says whether members give up. A mailbox starts
/// with `sequence`, an atomic number of the collective that the rest belongs to, and `fingerprint`, what the members
/// compare. A peer that waits gets what follows in the same cache line with it.
///
/// **A mailbox is free when it is filled again.** A member that has entered collective n has seen all come to n - 1, and
/// they came there when they had left n - 2: nobody reads what was brought to n - 2 any more, so its mailbox takes what is
/// brought to n. A member that leaves n without having seen all come waits for that first.
///
/// **What is read belongs to the announcement.** A member fills its mailbox, then stores `sequence`; peers load that, and
/// read then: the store releases, the load acquires.
///
/// **Either all go on or none does**, also where members give up. One that gives up takes its announcement back and looks
/// whether all others have come; one that has seen all come looks at all a second time. In the one order of all operations
/// on `sequence`, which are sequentially consistent, either the taking back comes first, and the second look finds it, or
/// what was put in its place; or the second look, and with it all arrivals, comes first, and the one that gives up sees
/// them and goes on. One member gives up at a time, so that none takes another's brief absence for its leaving. Only the
/// second look reads fingerprints: they cannot change any more. Where no member gives up, one look is enough.
template <class Medium>
class Mailboxes {
 public:
  /// The fingerprint of no call: for a failure that takes the place of one.
  static constexpr std::uint64_t failure = 0x6d03c4e1b98f527aU;

  Mailboxes(Medium medium, SpinBudget budget) : medium_(static_cast<Medium&&>(medium)), budget_(budget) {}

  [[nodiscard]] const Medium& medium() const noexcept { return medium_; }
  [[nodiscard]] std::size_t size() const noexcept { return medium_.size(); }
  [[nodiscard]] auto& of(std::size_t rank, std::uint32_t sequence) const noexcept {
    return medium_.mailbox(rank, sequence % 2);
  }

  /// Member `rank` comes to collective `sequence`, for which its mailbox is filled.
  void announce(std::size_t rank, std::uint32_t sequence) const {
    of(rank, sequence).sequence.store(sequence);
    medium_.arrivals().notify([&] { return peers_arrived(rank, sequence); });
  }
  /// It does not come there, because of a failure, of which is written what peers are to read.
  void announce_failure(std::size_t rank, std::uint32_t sequence) const {
    of(rank, sequence).sequence.store(sequence);
    medium_.arrivals().notify();
  }
  /// Takes the announcement of a call back, and announces a failure after `fail()` has written it; unless all have come in
  /// the meantime. Returns whether it did. One member at a time.
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
  /// Looks for a while whether `peer` has come, without sleeping, and not longer than `wait` lasts. With it come so many
  /// `bytes` behind sequence and fingerprint.
  [[nodiscard]] bool arrives_soon(std::size_t peer, std::uint32_t sequence, MailboxWait& wait,
                                  std::size_t bytes = 0) const {
    constexpr unsigned eager = 100;  // looks without a pause, which takes longer than a peer on its own core needs
    // A look takes lines away from the peer that is still writing them: with all of 256 B, a call took 0.24 us, not 0.17.
    const std::size_t ahead = std::min(head + bytes, 3 * cache_line);
    const auto* const box = reinterpret_cast<const std::byte*>(&of(peer, sequence));
    for (unsigned spin = 0; spin < budget_.spins; ++spin) {
      // The rest arrives together with the line that announces it.
      for (std::size_t at = cache_line; at < ahead; at += cache_line) __builtin_prefetch(box + at);
      if (arrived(peer, sequence)) return true;
      if (spin >= eager) relax();
    }
    constexpr unsigned per_clock = 16;  // looks for each look at the clock: others may keep the core for long
    wait.begin();
    for (unsigned yield = 0; yield < budget_.yields; ++yield) {
      if (arrived(peer, sequence)) return true;
      if (yield % per_clock == per_clock - 1 && wait.is_over()) return false;
      sched_yield();
    }
    return false;
  }
  /// Waits for `peer`, calling `look()` about every millisecond, because nobody reports that a peer has failed, left or
  /// returned. That ends the wait by throwing.
  template <class Look>
  void await_slowly(std::size_t rank, std::size_t peer, std::uint32_t sequence, Look&& look) const {
    while (!arrived(peer, sequence)) {
      look();
      rest(rank, sequence);
    }
  }
  /// Sleeps until all peers have come or somebody calls, at most a millisecond.
  void rest(std::size_t rank, std::uint32_t sequence) const noexcept {
    constexpr std::int64_t millisecond = 1'000'000;
    medium_.arrivals().wait([&] { return peers_arrived(rank, sequence); }, millisecond);
  }

  /// Returns when all have come to collective `sequence`, which `rank` has announced: whether all bring `fingerprint`.
  /// Calls `slowly(peer, wait)` for a peer that does not come soon; it returns when that one has come, or throws. Calls
  /// `came(peer)` each time that a peer is seen to have come.
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
  static constexpr std::size_t head = 16;  // sequence, what else fits before the fingerprint, and that

  Medium medium_;
  SpinBudget budget_;
};

}  // namespace dist::detail
