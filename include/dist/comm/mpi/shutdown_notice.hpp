#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/small_messages.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/wait.hpp>

namespace dist::mpi::detail {

/// Tracks the members that have left a communicator. A leaving member notifies all others, which may wait for it, and
/// frees the communicator only when all have left: otherwise messages in transit might reach the next communicator with
/// the same number.
///
/// When a departure is visible, all earlier messages of the member in this communicator have arrived: MPI keeps their
/// order, because a receive with any tag must see it.
class ShutdownNotice {
 public:
  /// `tag` is reserved for messages about departures.
  ShutdownNotice(MPI_Comm comm, int tag);
  ShutdownNotice(const ShutdownNotice&) = delete;
  ShutdownNotice& operator=(const ShutdownNotice&) = delete;

  /// Processes arrived messages: one MPI call if none has arrived.
  void look();
  /// True if `member` has left and does not enter `step`, in the members' common count.
  [[nodiscard]] bool has_left(std::size_t member, std::uint64_t step = 0) const noexcept;

  /// Leaves: this member enters no step from `step` on. Notifies the others without waiting, and frees the communicator
  /// when all have left, at the latest in MPI_Finalize. Throws MpiError.
  static void leave(std::unique_ptr<ShutdownNotice> mine, std::uint64_t step = 0);
  /// Leaves without an immediate notice, because the others learn it in another way: this member enters no step from `step` on.
  /// Notifies them in MPI_Finalize, so that they free the communicator without waiting; its own is left to
  /// MPI_Finalize. The object must live until then.
  void leave_at_finalize(std::uint64_t step = 0);
  /// Frees the communicators that all members have left. Returns true if none remains.
  static bool free_left() { return LeftGroups::of_process().free_finished(); }

 private:
  /// The communicators that this process has left. Lives as long as MPI, possibly longer than static objects.
  class LeftGroups {
   public:
    static LeftGroups& of_process() {
      static LeftGroups& kept = *new LeftGroups;
      return kept;
    }
    void add(std::unique_ptr<ShutdownNotice> group) {
      const std::lock_guard lock{mutex_};
      groups_.push_back(std::move(group));
    }
    void add_untold(ShutdownNotice* group) {
      const std::lock_guard lock{mutex_};
      group->next_untold_ = untold_;
      untold_ = group;
    }
    /// MPI frees a communicator without waiting for other members.
    bool free_finished() {
      const std::lock_guard lock{mutex_};
      std::erase_if(groups_, [](const std::unique_ptr<ShutdownNotice>& group) {
        const bool is_over = group->is_over();
        if (!is_over) return false;
        group->drop_messages();
        MPI_Comm_free(&group->comm_);
        return true;
      });
      return groups_.empty();
    }

   private:
    /// MPI_Finalize frees MPI_COMM_SELF first, which calls its attribute callbacks.
    LeftGroups() {
      int key = MPI_KEYVAL_INVALID;
      DIST_MPI_CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &at_finalize, &key, nullptr));
      DIST_MPI_CALL(MPI_Comm_set_attr(MPI_COMM_SELF, key, this));
    }
    /// Last messages of members that arrive here come soon. Communicators that others keep are left to MPI_Finalize.
    static int at_finalize(MPI_Comm, int, void* of_process, void*) noexcept {
      constexpr std::int64_t second = 1'000'000'000;
      LeftGroups& groups = *static_cast<LeftGroups*>(of_process);
      groups.tell_untold();
      const std::int64_t start = dist::detail::monotonic_nanoseconds();
      while (!(groups.free_finished() && groups.have_told()) && dist::detail::monotonic_nanoseconds() - start < second)
        sched_yield();
      return MPI_SUCCESS;
    }
    void tell_untold() noexcept {
      const std::lock_guard lock{mutex_};
      for (ShutdownNotice* group = untold_; group != nullptr; group = group->next_untold_) {
        try {
          group->tell(group->own_step_);
        } catch (const Error&) {
          // The members wait for a second.
        }
      }
    }
    [[nodiscard]] bool have_told() noexcept {
      const std::lock_guard lock{mutex_};
      bool all = true;
      for (ShutdownNotice* group = untold_; group != nullptr; group = group->next_untold_)
        all = group->outbox_.has_left() && all;
      return all;
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<ShutdownNotice>> groups_;
    ShutdownNotice* untold_ = nullptr;  ///< list of groups that notify others in MPI_Finalize
  };

  void tell(std::uint64_t step) { outbox_.send_to_others(comm_, tag_, step); }

  [[nodiscard]] bool is_over() noexcept;

  /// Receives the remaining messages, all of which have arrived, because MPI would keep them.
  void drop_messages() noexcept;

  MPI_Comm comm_;
  int tag_;
  std::vector<std::optional<std::uint64_t>> steps_;  // per departed member: the first step that it does not enter
  std::size_t left_ = 0;
  Outbox outbox_;
  std::uint64_t own_step_ = 0;
  ShutdownNotice* next_untold_ = nullptr;
};

}  // namespace dist::mpi::detail

#ifndef DIST_COMPILED
#include <dist/comm/mpi/shutdown_notice.ipp>
#endif
