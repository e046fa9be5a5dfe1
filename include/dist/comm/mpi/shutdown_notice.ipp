#pragma once

#include <dist/comm/mpi/shutdown_notice.hpp>
#include <dist/core/config.hpp>

namespace dist::mpi::detail {

DIST_INLINE ShutdownNotice::ShutdownNotice(MPI_Comm comm, int tag) : comm_(comm), tag_(tag), steps_(size_of(comm)) {
  static_cast<void>(LeftGroups::of_process());  // MPI may be unusable when this member leaves
}

DIST_INLINE void ShutdownNotice::look() {
  take_messages<std::uint64_t>(comm_, tag_, [&](std::size_t member, std::uint64_t step) {
    steps_[member] = step;
    ++left_;
  });
}

DIST_INLINE bool ShutdownNotice::has_left(std::size_t member, std::uint64_t step) const noexcept {
  return steps_[member] && *steps_[member] <= step;
}

DIST_INLINE void ShutdownNotice::leave(std::unique_ptr<ShutdownNotice> mine, std::uint64_t step) {
  mine->tell(step);
  LeftGroups::of_process().add(std::move(mine));
  static_cast<void>(free_left());
}

DIST_INLINE void ShutdownNotice::leave_at_finalize(std::uint64_t step) {
  own_step_ = step;
  LeftGroups::of_process().add_untold(this);
}

DIST_INLINE bool ShutdownNotice::is_over() noexcept {
  try {
    look();
    return outbox_.has_left() && left_ + 1 == steps_.size();
  } catch (const Error&) {
    return false;  // left to MPI_Finalize
  }
}

DIST_INLINE void ShutdownNotice::drop_messages() noexcept {
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

}  // namespace dist::mpi::detail
