#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/nccl/api.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/wait.hpp>
#include <dist/device/wait.hpp>

namespace dist::nccl {

/// Guard of an NCCL group: calls of one thread that NCCL starts together. Calls for several ranks would otherwise wait
/// for each other.
class Group {
 public:
  Group() : answer_(ncclGroupStart()), is_open_(answer_ == ncclSuccess) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { static_cast<void>(end()); }

  /// Records the result of a call. Returns true if neither this call nor an earlier one failed.
  bool add(ncclResult_t answer) noexcept {
    if (answer_ == ncclSuccess && answer != ncclInProgress) answer_ = answer;
    return answer_ == ncclSuccess;
  }
  /// True if the group was opened and has not ended.
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// True if no call has failed.
  [[nodiscard]] bool is_fine() const noexcept { return answer_ == ncclSuccess; }
  /// Ends the group. Returns the first failure, else the result of the group.
  ncclResult_t end() noexcept {
    if (!std::exchange(is_open_, false)) return answer_;
    const ncclResult_t answer = ncclGroupEnd();
    if (answer_ == ncclSuccess) answer_ = answer;
    return answer_;
  }

 private:
  ncclResult_t answer_;
  bool is_open_;
};

/// Kernels that use resources of ranks, such as memory of other GPUs, which an abort destroys. `stop` ends a rank's
/// NCCL work and keeps the rank. `await(self)` returns true if the replicas' GPUs have become idle.
struct UsersOfRanks {
  /// Passed to `await`; null: no kernels use the ranks.
  void* self = nullptr;
  /// Ends a rank's NCCL work and keeps the rank.
  ncclResult_t (*stop)(ncclComm_t rank) = nullptr;
  /// Returns true if the replicas' GPUs have become idle.
  bool (*await)(void* self) noexcept = nullptr;
};

/// The ranks of this process's replicas in one NCCL communicator. NCCL calls do not block: the host polls until NCCL
/// has finished, the timeout expires, or a call or a process with other ranks fails, which NCCL may not detect. The
/// first failure aborts all GPU work (ncclCommAbort), and every later call throws it. Replicas call concurrently. Other
/// processes detect the failure through NCCL, at their next collective, or by a timeout.
class Communicators {
 public:
  /// Creates one rank for each GPU, from rank `first` on, in the communicator `id` of `ranks` ranks. Returns when all
  /// ranks have joined. `health` watches the processes of the other ranks, if any. Throws NcclError, DeadlineExceeded,
  /// Unavailable.
  Communicators(std::span<const int> devices, const ncclUniqueId& id, std::size_t first, std::size_t ranks,
                std::chrono::nanoseconds timeout, PeerHealth* health = nullptr)
      : size_(devices.size()), members_(new Member[devices.size()]), timeout_(timeout), health_(health) {
    for (std::size_t replica = 0; replica < size_; ++replica) {
      members_[replica].device = devices[replica];
      members_[replica].rank = first + replica;
    }
    try {
      join(id, ranks);
    } catch (...) {
      cancel(std::current_exception());
      throw;
    }
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  /// Waits for enqueued GPU work, at most for the timeout.
  ~Communicators() {
    if (failed_.load()) return;
    try {
      for (std::size_t replica = 0; replica < size_; ++replica)
        start(replica, "ncclCommFinalize", [](ncclComm_t communicator) { return ncclCommFinalize(communicator); });
      for (std::size_t replica = 0; replica < size_; ++replica) settle(replica, "ncclCommFinalize", timeout_);
      for (std::size_t replica = 0; replica < size_; ++replica)
        static_cast<void>(ncclCommDestroy(std::exchange(members_[replica].communicator, nullptr)));
    } catch (...) {
      cancel(std::current_exception());
    }
  }

  /// Calls `call(communicator)` for a replica's rank; errors contain `name`. Returns when NCCL has enqueued its GPU
  /// work. ncclSuccess does not show that: NCCL 2.28 returns it from ncclDevCommCreate and ncclCommWindowRegister
  /// before they are done. Throws NcclError, DeadlineExceeded.
  template <class Call>
  void call(std::size_t replica, std::string_view name, std::chrono::nanoseconds timeout, Call&& call) {
    try {
      start(replica, name, call);
      settle(replica, name, timeout);
    } catch (...) {
      cancel(std::current_exception());
      throw;
    }
  }

  /// Like call(), but from any thread of this process, for functions that NCCL completes at once. Waits until NCCL has
  /// done the work of the replica's own thread.
  template <class Call>
  void call_in_turn(std::size_t replica, std::string_view name, std::chrono::nanoseconds timeout, Call&& call) {
    try {
      cuda::await([&] { return start_in_turn(replica, name, call); },
                  [&] { return concat("the calls before '", name, "' of ", describe(replica)); }, timeout);
    } catch (...) {
      cancel(std::current_exception());
      throw;
    }
  }

  /// Calls `use()`, which launches kernels on a replica's GPU that use its rank's resources. Throws the failure that
  /// ended the ranks' work.
  template <class Use>
  void use(std::size_t replica, Use&& use) {
    const std::lock_guard lock{members_[replica].using_it};
    require_success();
    use();
  }
  /// Sets the kernels that use ranks; a null `self` means none. Not thread-safe.
  void set_users(const UsersOfRanks& users) noexcept { users_ = users; }

  /// Throws if any replica of any process has failed.
  void look(std::size_t replica) {
    try {
      static_cast<void>(is_settled(replica, "an earlier call"));
    } catch (...) {
      cancel(std::current_exception());
      throw;
    }
  }

  /// Ends the GPU work and the waits of the replicas. Every later call throws `why`, or an earlier failure.
  void cancel(const std::exception_ptr& why) noexcept {
    {
      const std::lock_guard lock{failing_};
      if (failed_.load()) return;
      failure_ = why;
      failed_.store(true);
    }
    if (users_.self != nullptr && !stop()) return;  // kernels may still use the ranks: leak them with their GPUs
    for (std::size_t replica = 0; replica < size_; ++replica) {
      Member& member = members_[replica];
      const std::lock_guard lock{member.using_it};
      if (member.communicator != nullptr) static_cast<void>(ncclCommAbort(std::exchange(member.communicator, nullptr)));
    }
  }

 private:
  struct Member {
    std::mutex using_it;  // NCCL allows one thread at a time for each communicator
    ncclComm_t communicator = nullptr;
    int device = 0;
    std::size_t rank = 0;
  };

  /// Creates all ranks of this process in one group: a single one would wait for the others.
  void join(const ncclUniqueId& id, std::size_t ranks) {
    Group group;
    for (std::size_t replica = 0; group.is_open() && replica < size_; ++replica) {
      Member& member = members_[replica];
      const cuda::SelectedDevice selected{member.device};
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      if (!group.add(ncclCommInitRankConfig(&member.communicator, static_cast<int>(ranks), id,
                                            static_cast<int>(member.rank), &config)))
        break;
    }
    const ncclResult_t answer = group.end();
    if (answer != ncclSuccess && answer != ncclInProgress)
      throw error_of(answer, "ncclCommInitRankConfig", describe(0));
    for (std::size_t replica = 0; replica < size_; ++replica) settle(replica, "ncclCommInitRankConfig", timeout_);
  }

  /// Ends the GPUs' NCCL work, and waits for the kernels that use ranks. Returns true if these are done.
  [[nodiscard]] bool stop() noexcept {
    for (std::size_t replica = 0; replica < size_; ++replica) {
      const std::lock_guard lock{members_[replica].using_it};
      static_cast<void>(users_.stop(members_[replica].communicator));
    }
    try {
      for (std::size_t replica = 0; replica < size_; ++replica)
        cuda::await(
            [&] {
              const std::lock_guard lock{members_[replica].using_it};
              ncclResult_t state = ncclSuccess;
              return ncclCommGetAsyncError(members_[replica].communicator, &state) != ncclSuccess ||
                     state != ncclInProgress;
            },
            [&] { return describe(replica); }, timeout_);
    } catch (const DeadlineExceeded&) {
      return false;
    }
    return users_.await(users_.self);
  }

  [[nodiscard]] std::string describe(std::size_t replica) const {
    return concat("replica ", members_[replica].rank, " on GPU ", members_[replica].device);
  }

  /// The caller holds the lock of a member.
  void require_success() const {
    if (failed_.load()) std::rethrow_exception(failure_);
  }

  template <class Call>
  void start(std::size_t replica, std::string_view name, Call&& call) {
    Member& member = members_[replica];
    const std::lock_guard lock{member.using_it};
    require_success();
    const ncclResult_t answer = call(member.communicator);
    if (answer != ncclSuccess && answer != ncclInProgress)
      throw error_of(answer, name, describe(replica), member.communicator);
  }
  /// Returns true if the call was started, false while the communicator is in progress.
  template <class Call>
  [[nodiscard]] bool start_in_turn(std::size_t replica, std::string_view name, Call&& call) {
    Member& member = members_[replica];
    look_at_processes();
    const std::lock_guard lock{member.using_it};
    if (!is_settled(replica, member, "an earlier call")) return false;
    const ncclResult_t answer = call(member.communicator);
    if (answer != ncclSuccess) throw error_of(answer, name, describe(replica), member.communicator);
    return true;
  }
  [[nodiscard]] bool is_settled(std::size_t replica, std::string_view name) {
    Member& member = members_[replica];
    look_at_processes();
    const std::lock_guard lock{member.using_it};
    return is_settled(replica, member, name);
  }
  /// The caller holds the lock of `member`.
  [[nodiscard]] bool is_settled(std::size_t replica, const Member& member, std::string_view name) const {
    require_success();
    ncclResult_t state = ncclSuccess;
    const ncclResult_t answer = ncclCommGetAsyncError(member.communicator, &state);
    if (answer != ncclSuccess) throw error_of(answer, "ncclCommGetAsyncError", describe(replica), member.communicator);
    if (state == ncclInProgress) return false;
    if (state != ncclSuccess) throw error_of(state, name, describe(replica), member.communicator);
    return true;
  }
  /// Checks the processes about once per millisecond.
  void look_at_processes() {
    if (health_ == nullptr) return;
    constexpr std::int64_t pause = 1'000'000;
    const std::int64_t now = ::dist::detail::monotonic_nanoseconds();
    std::int64_t due = next_look_.load();
    if (now >= due && next_look_.compare_exchange_strong(due, now + pause)) health_->look();
  }
  void settle(std::size_t replica, std::string_view name, std::chrono::nanoseconds timeout) {
    cuda::await([&] { return is_settled(replica, name); },
                [&] { return concat("'", name, "' of ", describe(replica)); }, timeout);
  }

  std::size_t size_;
  std::unique_ptr<Member[]> members_;
  std::chrono::nanoseconds timeout_;
  PeerHealth* health_;
  UsersOfRanks users_;
  std::atomic<std::int64_t> next_look_{0};
  std::mutex failing_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace dist::nccl
