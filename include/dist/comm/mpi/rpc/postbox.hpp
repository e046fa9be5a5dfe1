#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/rpc/packet.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/pointers.hpp>

namespace dist::mpi::detail {

/// Memory that MPI still uses though nobody waits for it any more: it stays until the process ends.
template <class Memory>
void keep_until_the_process_ends(Memory memory) {
  static std::vector<Memory>& kept = *new std::vector<Memory>;
  kept.push_back(std::move(memory));
}

/// Packets to and from the other processes of a communicator, in the order in which each of them sends. Nothing waits; one
/// thread at a time.
class Postbox {
 public:
  /// `tag` is that of the packets, and of no other messages.
  Postbox(MPI_Comm comm, int tag) : comm_(comm), tag_(tag), arriving_(size_of(comm)) {}
  Postbox(const Postbox&) = delete;
  Postbox& operator=(const Postbox&) = delete;
  ~Postbox() {
    for (std::size_t peer = 0; peer < arriving_.size(); ++peer) drop(peer);
  }

  /// Throws MpiError.
  void send(std::size_t peer, std::vector<std::byte> packet) {
    auto out = std::make_unique<Message>();
    out->peer = peer;
    out->bytes = std::move(packet);
    check(MPI_Isend(out->bytes.data(), static_cast<int>(out->bytes.size()), MPI_BYTE, static_cast<int>(peer), tag_,
                    comm_, &out->request),
          "MPI_Isend");
    if (!is_done(*out)) leaving_.push_back(std::move(out));
  }

  /// Lets MPI work, and calls `take(peer, bytes)` for what has come whole, `refuse(peer)` for a message that is longer than
  /// any packet. Returns whether anything moved. Throws MpiError.
  template <class Take, class Refuse>
  bool advance(Take&& take, Refuse&& refuse) {
    bool moved = std::erase_if(leaving_, [](const std::unique_ptr<Message>& out) { return is_done(*out); }) != 0;
    while (receive_next()) moved = true;
    for (std::size_t peer = 0; peer < arriving_.size(); ++peer)
      while (!arriving_[peer].empty()) {
        Message& first = *arriving_[peer].front();
        const bool too_long = first.too_long;
        if (!is_done(first)) break;
        std::vector<std::byte> bytes = std::move(first.bytes);
        arriving_[peer].pop_front();
        moved = true;
        if (too_long)
          refuse(peer);
        else
          take(peer, std::move(bytes));
      }
    return moved;
  }
  /// Whether all packets have left.
  [[nodiscard]] bool is_empty() const noexcept { return leaving_.empty(); }

  /// Nothing of this process arrives any more, and what is for it does not matter.
  void drop(std::size_t peer) noexcept {
    const auto keep = [](std::unique_ptr<Message>& message) {
      if (message->request == MPI_REQUEST_NULL) return;
      MPI_Request_free(&message->request);
      keep_until_the_process_ends(std::move(message));
    };
    for (std::unique_ptr<Message>& out : leaving_)
      if (out->peer == peer) keep(out);
    std::erase_if(leaving_, [&](const std::unique_ptr<Message>& out) { return !out || out->peer == peer; });
    for (std::unique_ptr<Message>& in : arriving_[peer]) keep(in);
    arriving_[peer].clear();
  }

 private:
  struct Message {
    std::size_t peer = 0;
    bool too_long = false;
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  [[nodiscard]] static bool is_done(Message& message) {
    int done = 0;
    const int code = MPI_Test(&message.request, &done, MPI_STATUS_IGNORE);
    if (!message.too_long) check(code, "MPI_Test");  // the end of such a message is cut off
    return done != 0 || message.request == MPI_REQUEST_NULL;
  }
  [[nodiscard]] bool receive_next() {
    int here = 0;
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, tag_, comm_, &here, &found, &status), "MPI_Improbe");
    if (here == 0) return false;
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    auto in = std::make_unique<Message>();
    in->peer = static_cast<std::size_t>(status.MPI_SOURCE);
    in->too_long = size < 0 || static_cast<std::size_t>(size) > longest_packet;
    // A message that is too long arrives whole as well: Open MPI 5 writes past the end of memory that is too short for it.
    in->bytes.resize(size < 0 ? longest_packet : static_cast<std::size_t>(size));
    const int code = MPI_Imrecv(in->bytes.data(), static_cast<int>(in->bytes.size()), MPI_BYTE, &found, &in->request);
    if (!in->too_long) check(code, "MPI_Imrecv");
    arriving_[in->peer].push_back(std::move(in));
    return true;
  }

  MPI_Comm comm_;
  int tag_;
  std::vector<std::unique_ptr<Message>> leaving_;
  std::vector<std::deque<std::unique_ptr<Message>>> arriving_;  ///< by process, in its order
};

}  // namespace dist::mpi::detail
