#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/pointers.hpp>

namespace dist::mpi::detail {

/// Takes the messages of this tag that have come: one call of MPI where there is none. Calls `take(peer, message)`.
template <class Message, class Take>
void take_messages(MPI_Comm comm, int tag, Take&& take) {
  for (;;) {
    int here = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &here, &status), "MPI_Iprobe");
    if (here == 0) return;
    Message message;
    check(MPI_Recv(&message, sizeof(message), MPI_BYTE, status.MPI_SOURCE, tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
    take(static_cast<std::size_t>(status.MPI_SOURCE), message);
  }
}

/// Small messages that their sender does not wait for, each to one or several members.
class Outbox {
 public:
  void send(MPI_Comm comm, int tag, std::span<const std::byte> message, const std::vector<std::size_t>& peers) {
    std::erase_if(sent_, [](const std::unique_ptr<Sent>& each) { return each->has_left(); });
    Sent& out = *sent_.emplace_back(std::make_unique<Sent>());
    out.bytes.assign(message.begin(), message.end());
    for (const std::size_t peer : peers)
      check(MPI_Isend(out.bytes.data(), static_cast<int>(out.bytes.size()), MPI_BYTE, static_cast<int>(peer), tag, comm,
                      &out.requests.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend");
  }

 private:
  struct Sent {
    [[nodiscard]] bool has_left() {
      int done = 0;
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
      return done != 0;
    }
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };

  std::vector<std::unique_ptr<Sent>> sent_;
};

}  // namespace dist::mpi::detail
