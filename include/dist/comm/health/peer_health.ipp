#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include <dist/comm/health/peer_health.hpp>
#include <dist/core/config.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

DIST_INLINE char process_state(pid_t pid) noexcept {
  char status[512];
  const int file = above_standard(open(concat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) return ' ';
  const ssize_t length = read(file, status, sizeof(status));
  close(file);
  const std::string_view line{status, length < 0 ? 0 : static_cast<std::size_t>(length)};
  const std::size_t name_end = line.rfind(')');  // "4711 (name) Z ..."
  return name_end != std::string_view::npos && name_end + 2 < line.size() ? line[name_end + 2] : ' ';
}

DIST_INLINE ProcessWatch::ProcessWatch(pid_t pid, bool by_number) noexcept : pid_(pid) {
#ifdef SYS_pidfd_open
  if (!by_number) descriptor_ = above_standard(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  gone_ = descriptor_ < 0 && !by_number && errno == ESRCH;
#else
  static_cast<void>(by_number);
#endif
}

DIST_INLINE bool ProcessWatch::ended() noexcept {
  if (gone_) return true;
  if (descriptor_ >= 0) {
    pollfd entry{descriptor_, POLLIN, 0};
    gone_ = poll(&entry, 1, 0) == 1;
  } else {
    gone_ = (kill(pid_, 0) != 0 && errno == ESRCH) || process_state(pid_) == 'Z';
  }
  return gone_;
}

DIST_INLINE void ProcessWatch::send(int signal) noexcept {
  if (ended()) return;
#ifdef SYS_pidfd_send_signal
  if (descriptor_ >= 0 && syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) == 0) return;
#endif
  kill(pid_, signal);
}

}  // namespace detail

DIST_INLINE std::uint64_t process_space() noexcept {
  struct stat numbers {};
  if (stat("/proc/self/ns/pid", &numbers) != 0) return 0;
  const int file = detail::above_standard(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file < 0) return 0;
  char boot[64];
  const ssize_t length = read(file, boot, sizeof(boot));
  close(file);
  if (length <= 0) return 0;
  return detail::hash_of({boot, static_cast<std::size_t>(length)}) ^ (numbers.st_ino * 0x9e3779b97f4a7c15U);
}

DIST_INLINE void PeerHealth::watch_process(std::size_t rank, std::string_view host, pid_t pid, bool by_number) {
  const std::lock_guard lock{mutex_};
  for (const Process& process : processes_)
    if (process.rank == rank && process.watch.pid() == pid) return;
  processes_.push_back({rank, std::string{host}, detail::ProcessWatch{pid, by_number}, false});
  list_descriptors();
}

DIST_INLINE void PeerHealth::watch_lifeline(int descriptor, Lifeline read) {
  const std::lock_guard lock{mutex_};
  lifelines_.push_back({descriptor, std::move(read)});
  list_descriptors();
}

DIST_INLINE void PeerHealth::watch_helper(std::string_view name, pid_t pid) {
  const std::lock_guard lock{mutex_};
  helpers_.push_back({std::string{name}, detail::ProcessWatch{pid}});
}

DIST_INLINE std::string PeerHealth::stopped() {
  const std::lock_guard lock{mutex_};
  std::string names;
  const auto add = [&](std::string_view name, detail::ProcessWatch& watch) {
    if (watch.stopped()) names += concat(names.empty() ? "" : ", ", name, " (process ", watch.pid(), ")");
  };
  for (Process& process : processes_) add(concat("worker ", process.rank), process.watch);
  for (Helper& helper : helpers_) add(helper.name, helper.watch);
  return names;
}

DIST_INLINE void PeerHealth::lose(LostPeer peer) {
  const std::lock_guard lock{mutex_};
  note(std::move(peer));
}

DIST_INLINE std::optional<LostPeer> PeerHealth::find_lost(std::optional<std::size_t> awaited) {
  const std::lock_guard lock{mutex_};
  ask();
  for (const PeerLoss& gone : gone_)
    if (gone.peer.rank == awaited && (!gone.peer.in_order || detail::monotonic_nanoseconds() - gone.since > delivery))
      return gone.peer;
  for (const PeerLoss& gone : gone_)
    if (!gone.peer.in_order) return gone.peer;
  return std::nullopt;
}

DIST_INLINE void PeerHealth::ask() {
  if (!descriptors_.empty() && poll(descriptors_.data(), static_cast<nfds_t>(descriptors_.size()), 0) > 0) {
    for (std::size_t line = 0; line < lifelines_.size(); ++line)
      if (descriptors_[line].revents != 0)
        if (std::optional<LostPeer> peer = lifelines_[line].read()) hear(std::move(*peer));
    ask_processes(true);
  } else if (some_by_number_) {
    ask_processes(false);
  }
}

DIST_INLINE void PeerHealth::ask_processes(bool all) {
  for (Process& process : processes_) {
    if (process.noted || (!all && process.watch.descriptor() >= 0) || !process.watch.ended()) continue;
    process.noted = true;
    note({process.rank, process.host, concat("its process ", process.watch.pid(), " ended"), false});
  }
  if (all) list_descriptors();
}

DIST_INLINE void PeerHealth::hear(LostPeer peer) {
  for (PeerLoss& known : gone_)
    if (known.peer.rank == peer.rank && known.peer.in_order && !peer.in_order) known.peer = peer;
  note(std::move(peer));
}

DIST_INLINE void PeerHealth::note(LostPeer peer) {
  for (const PeerLoss& known : gone_)
    if (known.peer.rank == peer.rank) return;
  gone_.push_back({std::move(peer), detail::monotonic_nanoseconds()});
}

DIST_INLINE void PeerHealth::list_descriptors() {
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

}  // namespace dist
