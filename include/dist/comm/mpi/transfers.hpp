#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/contract.hpp>

namespace dist::mpi::detail {

/// A transfer in progress, to or from a member.
struct Transfer {
  MPI_Request request = MPI_REQUEST_NULL;
  std::size_t peer = 0;
  std::size_t place = 0;  // index among the transfers in progress
};

inline void cancel(MPI_Request& request) {
  MPI_Cancel(&request);
  MPI_Request_free(&request);
}

/// The transfers of one member; interrupted ones count as in progress.
class Transfers {
 public:
  [[nodiscard]] Transfer start_send(MPI_Comm comm, std::span<const std::byte> bytes, std::size_t to, int tag) {
    DIST_EXPECT(bytes.size() <= most_bytes);
    Transfer transfer{.peer = to};
    DIST_MPI_CALL(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(to), tag, comm,
                            &transfer.request));
    return begun(transfer, false);
  }
  [[nodiscard]] Transfer start_receive(MPI_Comm comm, std::span<std::byte> bytes, std::size_t from, int tag) {
    DIST_EXPECT(bytes.size() <= most_bytes);
    Transfer transfer{.peer = from};
    DIST_MPI_CALL(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(from), tag, comm,
                            &transfer.request));
    return begun(transfer, true);
  }
  [[nodiscard]] static bool is_done(Transfer& transfer) {
    int done = 0;
    DIST_MPI_CALL(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  }
  /// Frees the slot of a completed transfer.
  void finish(const Transfer& transfer) {
    receives_[transfer.place] = MPI_REQUEST_NULL;
    free_places_.push_back(transfer.place);
  }

  [[nodiscard]] bool are_under_way() const noexcept { return free_places_.size() != receives_.size(); }
  void cancel_receives() {
    for (MPI_Request& receive : receives_)
      if (receive != MPI_REQUEST_NULL) cancel(receive);
  }

 private:
  static constexpr std::size_t most_bytes = std::numeric_limits<int>::max();

  [[nodiscard]] Transfer begun(Transfer transfer, bool receives) {
    if (free_places_.empty()) {
      free_places_.push_back(receives_.size());
      receives_.push_back(MPI_REQUEST_NULL);
    }
    transfer.place = free_places_.back();
    free_places_.pop_back();
    receives_[transfer.place] = receives ? transfer.request : MPI_REQUEST_NULL;
    return transfer;
  }

  std::vector<MPI_Request> receives_;  // by slot; null for sends
  std::vector<std::size_t> free_places_;
};

}  // namespace dist::mpi::detail
