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

/// A process of the job that has ended.
struct LostPeer {
  std::size_t rank = 0;   ///< among all workers
  std::string host;       ///< its machine, for messages
  std::string why;        ///< such as "its process 4711 ended"
  bool in_order = false;  ///< true if its work was complete: an error only for processes that wait for it
};

/// Creates the error for processes that wait for a lost peer.
[[nodiscard]] inline Unavailable unavailable(const LostPeer& peer) {
  return {peer.rank, peer.host, peer.why,
          peer.in_order ? "Let all workers call the same collectives"
                        : "See what that worker printed last, then start all workers again"};
}

namespace detail {

/// Returns the state of a process on this machine, as in /proc/PID/stat: 'T' if stopped by a signal, 'Z' if it has
/// ended but is not reaped; a space if unknown.
[[nodiscard]] char process_state(pid_t pid) noexcept;

/// Detects the end of a process on this machine, which need not be a child.
class ProcessWatch {
 public:
  /// Uses a process descriptor, which is safe against reuse of process numbers. Uses the number on systems without
  /// descriptors, or if `by_number` is true.
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
  /// A descriptor that becomes readable when the process ends; -1 without one: then poll `ended()`.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  [[nodiscard]] bool ended() noexcept;

  /// True while the process is stopped by a signal.
  [[nodiscard]] bool stopped() noexcept { return !ended() && process_state(pid_) == 'T'; }
  void send(int signal) noexcept;

 private:
  pid_t pid_;
  int descriptor_ = -1;
  bool gone_ = false;
};

}  // namespace detail

/// A number shared by processes that can monitor each other by process number: processes on one machine, in one
/// namespace. 0 if unknown.
[[nodiscard]] std::uint64_t process_space() noexcept;

/// Detects lost peers of a process: processes on this machine through the system, others through connections whose
/// owner reads them. Thread-safe.
///
/// Loops that wait for a peer call `look()` about every millisecond.
class PeerHealth {
 public:
  /// Called when data can be read: returns the lost process, if a message or the end of the connection indicates one.
  /// May call `lose`, but no other function of this object.
  using Lifeline = detail::UniqueFunction<std::optional<LostPeer>>;

  PeerHealth() = default;
  PeerHealth(const PeerHealth&) = delete;
  PeerHealth& operator=(const PeerHealth&) = delete;

  /// Starts to monitor a process on this machine, unless it is already monitored.
  void watch_process(std::size_t rank, std::string_view host, pid_t pid, bool by_number = false);

  /// Calls `read`, without waiting, whenever `descriptor` is readable. The caller owns the descriptor, and keeps it
  /// open for the lifetime of this object. Exceptions of `read` leave `look`.
  void watch_lifeline(int descriptor, Lifeline read);

  /// Lets messages name a process of this machine while it is stopped by a signal; `name` is, for example, "the server
  /// process of this host".
  void watch_helper(std::string_view name, pid_t pid);
  /// The processes on this machine stopped by a signal, for messages: "worker 1 (process 4711)"; else empty.
  [[nodiscard]] std::string stopped();
  /// Records a loss detected by another process. If the peer had completed its work (`in_order`), this is an error only
  /// for processes that wait for it, a second later, because earlier messages may still be in transit.
  void lose(LostPeer peer);

  /// Throws Unavailable if a peer is lost, or if the peer `awaited` has ended, even in order.
  void look(std::optional<std::size_t> awaited = std::nullopt) {
    if (const std::optional<LostPeer> peer = find_lost(awaited)) throw unavailable(*peer);
  }

  /// Returns the loss that `look` throws: of the awaited peer, or the first lost peer.
  [[nodiscard]] std::optional<LostPeer> find_lost(std::optional<std::size_t> awaited = std::nullopt);

 private:
  static constexpr std::int64_t delivery = 1'000'000'000;  // time for messages sent before the end in order

  struct PeerLoss {
    LostPeer peer;
    std::int64_t since;
  };
  struct Process {
    std::size_t rank;
    std::string host;
    detail::ProcessWatch watch;
    bool noted;  // the end has been recorded
  };
  struct Line {
    int descriptor;
    Lifeline read;
  };
  struct Helper {
    std::string name;
    detail::ProcessWatch watch;
  };

  /// Polls all descriptors in one system call.
  void ask();
  void ask_processes(bool all);
  /// Records a lifeline's report. A loss replaces an earlier report of the peer's orderly end.
  void hear(LostPeer peer);
  void note(LostPeer peer);
  [[nodiscard]] std::string host_of(std::size_t rank) const;
  /// Lists lifelines in order, then running processes.
  void list_descriptors();

  std::recursive_mutex mutex_;  // because a lifeline's reader may call back
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
