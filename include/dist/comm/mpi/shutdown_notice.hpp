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

/// Which members have left a communicator. A member that leaves tells every other one, so that those who wait for it
/// hear of it, and frees the communicator only when all have told: what is still on its way would else be taken for a
/// message of the next communicator that gets the number of this one.
///
/// Where a departure shows, all that the member sent before it in this communicator has come: MPI keeps the order of the
/// messages, because a receive of any tag has to see them in it.
class ShutdownNotice {
 public:
  /// `tag` is that of the messages about departures, and of no others.
  ShutdownNotice(MPI_Comm comm, int tag) : comm_(comm), tag_(tag), steps_(size_of(comm)) {
    static_cast<void>(LeftGroups::of_process());  // MPI may be of no use when this member leaves
  }
  ShutdownNotice(const ShutdownNotice&) = delete;
  ShutdownNotice& operator=(const ShutdownNotice&) = delete;

  /// Takes the messages that have come: one call of MPI where there is none.
  void look() {
    take_messages<std::uint64_t>(comm_, tag_, [&](std::size_t member, std::uint64_t step) {
      steps_[member] = step;
      ++left_;
    });
  }
  /// Whether `member` has left and does not come to `step`, as members count what they do together.
  [[nodiscard]] bool has_left(std::size_t member, std::uint64_t step = 0) const noexcept {
    return steps_[member] && *steps_[member] <= step;
  }

  /// This member leaves: it comes to no step from `step` on. Tells the others, and frees the communicator when all have
  /// left, at the latest when MPI is finalised. Does not wait for them. Throws MpiError.
  static void leave(std::unique_ptr<ShutdownNotice> mine, std::uint64_t step = 0) {
    mine->tell(step);
    LeftGroups::of_process().add(std::move(mine));
    static_cast<void>(free_left());
  }
  /// This member comes to no step from `step` on either, but the others hear in another way why. It tells them when MPI is
  /// finalised, so that they free the communicator without waiting for it; its own is left to MPI_Finalize. The object must
  /// live until then.
  void leave_at_finalize(std::uint64_t step = 0) {
    own_step_ = step;
    LeftGroups::of_process().add_untold(this);
  }
  /// Frees the communicators that this process and all their other members have left. Returns whether that are all that
  /// it has left.
  static bool free_left() { return LeftGroups::of_process().free_finished(); }

 private:
  /// The communicators that this process has left. They live as long as MPI, which may be longer than static objects.
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
    /// MPI frees a communicator without waiting for the other members, which do it at other times.
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
    /// MPI_Finalize frees MPI_COMM_SELF first, and calls what is attached to it.
    LeftGroups() {
      int key = MPI_KEYVAL_INVALID;
      DIST_MPI_CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &at_finalize, &key, nullptr));
      DIST_MPI_CALL(MPI_Comm_set_attr(MPI_COMM_SELF, key, this));
    }
    /// The last messages of members that come here come at once. What the others do not free is left to MPI_Finalize.
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
          // Its members wait for a second.
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
    ShutdownNotice* untold_ = nullptr;  ///< the last of those that tell when MPI is finalised, which lead to each other
  };

  void tell(std::uint64_t step) { outbox_.send_to_others(comm_, tag_, step); }

  [[nodiscard]] bool is_over() noexcept {
    try {
      look();
      return outbox_.has_left() && left_ + 1 == steps_.size();
    } catch (const Error&) {
      return false;  // it is left to MPI_Finalize
    }
  }

  /// What came and nobody took, as all of it has come: it would stay behind the communicator.
  void drop_messages() noexcept {
    for (;;) {
      int here = 0;
      int bytes = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &here, &status) != MPI_SUCCESS || here == 0) return;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::vector<std::byte> dropped(static_cast<std::size_t>(std::max(bytes, 0)));
      MPI_Recv(dropped.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm_, MPI_STATUS_IGNORE);
    }
  }

  MPI_Comm comm_;
  int tag_;
  std::vector<std::optional<std::uint64_t>> steps_;  // of the members that have left: the first they do not come to
  std::size_t left_ = 0;
  Outbox outbox_;
  std::uint64_t own_step_ = 0;
  ShutdownNotice* next_untold_ = nullptr;
};

}  // namespace dist::mpi::detail
