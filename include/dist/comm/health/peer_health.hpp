#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/collective_call.hpp>  // hash_of
#include <dist/core/error.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/device/wait.hpp>

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
[[nodiscard]] inline char process_state(pid_t pid) noexcept {
  char status[512];
  const int file = open(text("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return ' ';
  const ssize_t length = read(file, status, sizeof(status));
  close(file);
  const std::string_view line{status, length < 0 ? 0 : static_cast<std::size_t>(length)};
  const std::size_t name_end = line.rfind(')');  // "4711 (name) Z ..."
  return name_end != std::string_view::npos && name_end + 2 < line.size() ? line[name_end + 2] : ' ';
}

/// Sees the end of a process of this machine, whoever started it.
class ProcessWatch {
 public:
  /// Through a descriptor of the process, which no other process can take the number of; where the system has none of
  /// these, or `by_number` says so, by its number.
  explicit ProcessWatch(pid_t pid, bool by_number = false) noexcept : pid_(pid) {
#ifdef SYS_pidfd_open
    if (!by_number) descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    gone_ = descriptor_ < 0 && !by_number && errno == ESRCH;
#else
    static_cast<void>(by_number);
#endif
  }
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

  [[nodiscard]] bool ended() noexcept {
    if (gone_) return true;
    if (descriptor_ >= 0) {
      pollfd entry{descriptor_, POLLIN, 0};
      gone_ = poll(&entry, 1, 0) == 1;
    } else {
      gone_ = (kill(pid_, 0) != 0 && errno == ESRCH) || process_state(pid_) == 'Z';
    }
    return gone_;
  }

  /// Whether a signal stopped it, so that it does nothing until another one continues it.
  [[nodiscard]] bool stopped() noexcept { return !ended() && process_state(pid_) == 'T'; }
  void send(int signal) noexcept {
    if (ended()) return;
#ifdef SYS_pidfd_send_signal
    if (descriptor_ >= 0 && syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) == 0) return;
#endif
    kill(pid_, signal);
  }

 private:
  pid_t pid_;
  int descriptor_ = -1;
  bool gone_ = false;
};

}  // namespace detail

/// A number that processes have in common when each can watch the others by their numbers: they run on one machine and
/// see the same process numbers. 0 where that cannot be known.
[[nodiscard]] inline std::uint64_t process_space() noexcept {
  struct stat numbers {};
  if (stat("/proc/self/ns/pid", &numbers) != 0) return 0;
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char boot[64];
  const ssize_t length = read(file, boot, sizeof(boot));
  close(file);
  if (length <= 0) return 0;
  return detail::hash_of({boot, static_cast<std::size_t>(length)}) ^ (numbers.st_ino * 0x9e3779b97f4a7c15U);
}

/// What a process knows of the processes that it works with: which of them are gone. Those of this machine are watched
/// through the system, others through connections whose owner reads what it hears there. Any thread may ask.
///
/// Loops that wait for a peer ask about every millisecond, by `look()`.
class PeerHealth {
 public:
  /// Called when there is something to read: returns the lost process, if the message or the end of the connection says
  /// so. May call `depart` and `lose`, nothing else of this object.
  using Lifeline = detail::KeptFunction<std::optional<LostPeer>>;

  PeerHealth() = default;
  PeerHealth(const PeerHealth&) = delete;
  PeerHealth& operator=(const PeerHealth&) = delete;

  /// From now on the end of this process of this machine is noticed. One that is watched already is not watched twice.
  void watch_process(std::size_t rank, std::string_view host, pid_t pid, bool by_number = false) {
    const std::lock_guard lock{mutex_};
    for (const Process& process : processes_)
      if (process.rank == rank && process.watch.pid() == pid) return;
    processes_.push_back({rank, std::string{host}, detail::ProcessWatch{pid, by_number}, false});
    list_descriptors();
  }

  /// From now on `read` is called, without waiting, whenever `descriptor` is readable. The descriptor stays the
  /// caller's, and open until `forget_lifeline` or the end of this object. What `read` throws leaves `look`.
  void watch_lifeline(int descriptor, Lifeline read) {
    const std::lock_guard lock{mutex_};
    lifelines_.push_back({descriptor, std::move(read)});
    list_descriptors();
  }
  void forget_lifeline(int descriptor) {
    const std::lock_guard lock{mutex_};
    std::erase_if(lifelines_, [&](const Line& line) { return line.descriptor == descriptor; });
    list_descriptors();
  }

  /// This peer has finished its work, and said so: its end is not a loss unless a process waits for it. Waiting ones
  /// are told a second later, because what it sent before may still be on its way.
  void depart(std::size_t rank) {
    const std::lock_guard lock{mutex_};
    note({rank, host_of(rank), "it had finished its work", true});
  }
  /// From now on messages name this process of this machine when a signal has stopped it: `name` is "the server process
  /// of this host".
  void watch_helper(std::string_view name, pid_t pid) {
    const std::lock_guard lock{mutex_};
    helpers_.push_back({std::string{name}, detail::ProcessWatch{pid}});
  }
  /// The processes of this machine that a signal has stopped, for messages: "worker 1 (process 4711)"; empty if none
  /// is.
  [[nodiscard]] std::string stopped() {
    const std::lock_guard lock{mutex_};
    std::string names;
    const auto add = [&](std::string_view name, detail::ProcessWatch& watch) {
      if (watch.stopped()) names += text(names.empty() ? "" : ", ", name, " (process ", watch.pid(), ")");
    };
    for (Process& process : processes_) add(text("worker ", process.rank), process.watch);
    for (Helper& helper : helpers_) add(helper.name, helper.watch);
    return names;
  }
  /// A peer is gone, as another process found out.
  void lose(LostPeer peer) {
    const std::lock_guard lock{mutex_};
    note(std::move(peer));
  }

  /// Throws Unavailable when a peer is lost. With `awaited`, also when that one has departed in order.
  void look(std::optional<std::size_t> awaited = std::nullopt) {
    if (const std::optional<LostPeer> peer = find_lost(awaited)) throw unavailable(*peer);
  }

  /// The same as a value: the awaited one, or the first peer that was lost.
  [[nodiscard]] std::optional<LostPeer> find_lost(std::optional<std::size_t> awaited = std::nullopt) {
    const std::lock_guard lock{mutex_};
    ask();
    for (const Gone& gone : gone_)
      if (gone.peer.rank == awaited && (!gone.peer.in_order || detail::monotonic_nanoseconds() - gone.since > delivery))
        return gone.peer;
    for (const Gone& gone : gone_)
      if (!gone.peer.in_order) return gone.peer;
    return std::nullopt;
  }

 private:
  static constexpr std::int64_t delivery = 1'000'000'000;  // of what a peer sent before it ended in order

  struct Gone {
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
  void ask() {
    if (!descriptors_.empty() && poll(descriptors_.data(), static_cast<nfds_t>(descriptors_.size()), 0) > 0) {
      for (std::size_t line = 0; line < lifelines_.size(); ++line)
        if (descriptors_[line].revents != 0)
          if (std::optional<LostPeer> peer = lifelines_[line].read()) hear(std::move(*peer));
      ask_processes(true);
    } else if (some_by_number_) {
      ask_processes(false);
    }
  }
  void ask_processes(bool all) {
    for (Process& process : processes_) {
      if (process.noted || (!all && process.watch.descriptor() >= 0) || !process.watch.ended()) continue;
      process.noted = true;
      note({process.rank, process.host, text("its process ", process.watch.pid(), " ended"), false});
    }
    if (all) list_descriptors();
  }
  /// A lifeline may tell of a loss after it told of the same peer's orderly end: that did not come to its end.
  void hear(LostPeer peer) {
    for (Gone& known : gone_)
      if (known.peer.rank == peer.rank && known.peer.in_order && !peer.in_order) known.peer = peer;
    note(std::move(peer));
  }
  void note(LostPeer peer) {
    for (const Gone& known : gone_)
      if (known.peer.rank == peer.rank) return;
    gone_.push_back({std::move(peer), detail::monotonic_nanoseconds()});
  }
  [[nodiscard]] std::string host_of(std::size_t rank) const {
    for (const Process& process : processes_)
      if (process.rank == rank) return process.host;
    return "unknown";
  }
  /// Lifelines first, in their order, then the processes that run.
  void list_descriptors() {
    descriptors_.clear();
    some_by_number_ = false;
    for (const Line& line : lifelines_) descriptors_.push_back({line.descriptor, POLLIN, 0});
    for (const Process& process : processes_) {
      if (process.noted) continue;
      if (process.watch.descriptor() >= 0)
        descriptors_.push_back({process.watch.descriptor(), POLLIN, 0});
      else
        some_by_number_ = true;
    }
  }

  std::recursive_mutex mutex_;  // for a lifeline's reader that calls back
  std::vector<Process> processes_;
  std::vector<Line> lifelines_;
  std::vector<Helper> helpers_;
  std::vector<pollfd> descriptors_;
  std::vector<Gone> gone_;
  bool some_by_number_ = false;
};

}  // namespace dist
