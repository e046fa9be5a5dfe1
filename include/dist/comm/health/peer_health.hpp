#pragma once

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>

namespace dist {

/// A process of the job that is gone.
struct LostPeer {
  std::size_t rank = 0;  ///< among all workers
  std::string host;
  std::string why;        ///< "its process 4711 ended"
  bool in_order = false;  ///< it had finished its work: an error only for those who wait for this very process
};

/// The error for those who wait for it.
[[nodiscard]] inline Unavailable unavailable(const LostPeer& peer) {
  return {peer.rank, peer.host, peer.why,
          peer.in_order ? "Let all workers call the same collectives"
                        : "See what that worker printed last, then start all workers again"};
}

namespace detail {

/// The state of a process of this machine as /proc/PID/stat gives it: 'T' when a signal stopped it, 'Z' when it ended and
/// its parent has not asked how; a space where that cannot be known.
[[nodiscard]] char process_state(pid_t pid) noexcept;

/// Sees the end of a process of this machine, whoever started it.
class ProcessWatch {
 public:
  /// Through a descriptor of the process, which no other process can take the number of; where the system has none of
  /// these, or `by_number` says so, by its number.
  explicit ProcessWatch(pid_t pid, bool by_number = false) noexcept;
  ProcessWatch(ProcessWatch&& other) noexcept
      : pid_(other.pid_), descriptor_(std::exchange(other.descriptor_, -1)), gone_(other.gone_) {}
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(gone_, other.gone_);
    return *this;
  }
  ~ProcessWatch() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Becomes readable when the process ends; -1 where there is none, and `ended()` has to be asked.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  [[nodiscard]] bool ended() noexcept;

  /// Whether a signal stopped it, so that it does nothing until another one continues it.
  [[nodiscard]] bool stopped() noexcept { return !ended() && process_state(pid_) == 'T'; }
  void send(int signal) noexcept;

 private:
  pid_t pid_;
  int descriptor_ = -1;
  bool gone_ = false;
};

}  // namespace detail

/// A number that processes have in common when each can watch the others by their numbers: they run on one machine and
/// see the same process numbers. 0 where that cannot be known.
[[nodiscard]] std::uint64_t process_space() noexcept;

/// What a process knows of the processes that it works with: which of them are gone. Those of this machine are watched
/// through the system, others through connections whose owner reads what it hears there. Thread-safe.
///
/// Loops that wait for a peer ask about every millisecond, by `look()`.
class PeerHealth {
 public:
  /// Called when there is something to read: returns the lost process, if the message or the end of the connection says
  /// so. May call `lose`, nothing else of this object.
  using Lifeline = detail::UniqueFunction<std::optional<LostPeer>>;

  PeerHealth() = default;
  PeerHealth(const PeerHealth&) = delete;
  PeerHealth& operator=(const PeerHealth&) = delete;

  /// From now on the end of this process of this machine is noticed. One that is watched already is not watched twice.
  void watch_process(std::size_t rank, std::string_view host, pid_t pid, bool by_number = false);

  /// From now on `read` is called, without waiting, whenever `descriptor` is readable. The descriptor stays the
  /// caller's, and open until the end of this object. What `read` throws leaves `look`.
  void watch_lifeline(int descriptor, Lifeline read);

  /// From now on messages name this process of this machine when a signal has stopped it: `name` is "the server process
  /// of this host".
  void watch_helper(std::string_view name, pid_t pid);
  /// The processes of this machine that a signal has stopped, for messages: "worker 1 (process 4711)"; empty if none
  /// is.
  [[nodiscard]] std::string stopped();
  /// A peer is gone, as another process found out. Where it has finished its work, and said so (`in_order`), that is no
  /// loss unless a process waits for it. Waiting ones are told a second later, because what it sent before may still be on
  /// its way.
  void lose(LostPeer peer);

  /// Throws Unavailable when a peer is lost. With `awaited`, also when that one has departed in order.
  void look(std::optional<std::size_t> awaited = std::nullopt) {
    if (const std::optional<LostPeer> peer = find_lost(awaited)) throw unavailable(*peer);
  }

  /// The same as a value: the awaited one, or the first peer that was lost.
  [[nodiscard]] std::optional<LostPeer> find_lost(std::optional<std::size_t> awaited = std::nullopt);

 private:
  static constexpr std::int64_t delivery = 1'000'000'000;  // of what a peer sent before it ended in order

  struct PeerLoss {
    LostPeer peer;
    std::int64_t since;
  };
  struct Process {
    std::size_t rank;
    std::string host;
    detail::ProcessWatch watch;
    bool noted;  // its end
  };
  struct Line {
    int descriptor;
    Lifeline read;
  };
  struct Helper {
    std::string name;
    detail::ProcessWatch watch;
  };

  /// One system call for all that have descriptors.
  void ask();
  void ask_processes(bool all);
  /// A lifeline may tell of a loss after it told of the same peer's orderly end: that did not come to its end.
  void hear(LostPeer peer);
  void note(LostPeer peer);
  [[nodiscard]] std::string host_of(std::size_t rank) const;
  /// Lifelines first, in their order, then the processes that run.
  void list_descriptors();

  std::recursive_mutex mutex_;  // for a lifeline's reader that calls back
  std::vector<Process> processes_;
  std::vector<Line> lifelines_;
  std::vector<Helper> helpers_;
  std::vector<pollfd> descriptors_;
  std::vector<PeerLoss> gone_;
  bool some_by_number_ = false;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/health/peer_health.ipp>
#endif
