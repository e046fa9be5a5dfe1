#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::mpi::detail {

/// Receives the arrived messages with this tag, with one MPI call if there are none. Calls `take(peer, message)`.
template <class Message, class Take>
void take_messages(MPI_Comm comm, int tag, Take&& take) {
  for (;;) {
    int here = 0;
    MPI_Status status;
    DIST_MPI_CALL(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &here, &status));
    if (here == 0) return;
    Message message;
    DIST_MPI_CALL(MPI_Recv(&message, sizeof(message), MPI_BYTE, status.MPI_SOURCE, tag, comm, MPI_STATUS_IGNORE));
    take(static_cast<std::size_t>(status.MPI_SOURCE), message);
  }
}

/// Small messages, sent without waiting to one or several members.
class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  /// Keeps unsent messages, because MPI may still read them.
  ~Outbox() {
    if (!is_running() || has_left()) return;
    static auto& kept_until_the_process_ends = *new std::vector<std::unique_ptr<Sent>>;
    for (std::unique_ptr<Sent>& each : sent_) kept_until_the_process_ends.push_back(std::move(each));
  }

  void send(MPI_Comm comm, int tag, std::span<const std::byte> message, const std::vector<std::size_t>& peers) {
    static_cast<void>(has_left());
    Sent& out = *sent_.emplace_back(std::make_unique<Sent>());
    out.bytes.assign(message.begin(), message.end());
    for (const std::size_t peer : peers)
      DIST_MPI_CALL(MPI_Isend(out.bytes.data(), static_cast<int>(out.bytes.size()), MPI_BYTE, static_cast<int>(peer),
                              tag, comm, &out.requests.emplace_back(MPI_REQUEST_NULL)));
  }
  template <class Message>
  void send_to_others(MPI_Comm comm, int tag, const Message& message) {
    std::vector<std::size_t> peers;
    for (std::size_t peer = 0; peer < size_of(comm); ++peer)
      if (peer != rank_in(comm)) peers.push_back(peer);
    send(comm, tag, std::as_bytes(std::span{&message, 1}), peers);
  }
  /// True if all messages have been sent. Messages for which MPI reports an error never count as sent.
  [[nodiscard]] bool has_left() {
    std::erase_if(sent_, [](const std::unique_ptr<Sent>& each) {
      int done = 0;
      MPI_Testall(static_cast<int>(each->requests.size()), each->requests.data(), &done, MPI_STATUSES_IGNORE);
      return done != 0;
    });
    return sent_.empty();
  }

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };

  std::vector<std::unique_ptr<Sent>> sent_;
};

}  // namespace dist::mpi::detail
