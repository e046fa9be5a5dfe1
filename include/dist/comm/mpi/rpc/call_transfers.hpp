#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/rpc/packet.hpp>
#include <dist/comm/mpi/rpc/postbox.hpp>
#include <dist/comm/rpc.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/pointers.hpp>

namespace dist::mpi::detail {

/// A transfer travels in parts of so many bytes, the last of which may be shorter: counts of MPI are ints.
inline constexpr std::size_t part_size = std::size_t{4} << 20;
/// So many parts of a transfer are on their way at the same time, so many bytes wait for a receiver.
inline constexpr std::size_t parts_under_way = 4;

/// Memory in which a part was received.
struct ReceivedPart {
  std::unique_ptr<std::byte[]> memory;
  std::size_t size = 0;
};

/// Which transfer is meant, among those from one process to another.
struct TransferKey {
  std::size_t peer = 0;
  std::uint64_t call = 0;
  bool of_reply = false;
  friend auto operator<=>(const TransferKey&, const TransferKey&) = default;
};

/// Who wants to know how a transfer goes.
class TransferOwner {
 public:
  virtual ~TransferOwner() = default;
  /// MPI reads the pieces no longer, whether all were sent or not.
  virtual void sent() = 0;
  virtual void received(std::vector<ReceivedPart> parts) = 0;
  /// The sender sends something else than it has announced.
  virtual void broken(std::string_view why) = 0;
  /// The sender sends no more, though nobody has asked it to end.
  virtual void given_up() = 0;
};

/// The bytes of long messages, on their way from where they lie. A part is sent when its receiver has memory for it, so that
/// it leaves soon: a sender that gives up has its memory back when the parts that are on their way have arrived.
/// Nothing waits; one thread at a time.
class CallTransfers {
 public:
  using Tell = dist::detail::KeptFunction<void, std::size_t, const Packet&>;

  /// `tell(peer, packet)` sends a packet.
  CallTransfers(MPI_Comm comm, Tell tell) : comm_(comm), tell_(std::move(tell)), next_tag_(size_of(comm)) {}
  CallTransfers(const CallTransfers&) = delete;
  CallTransfers& operator=(const CallTransfers&) = delete;
  ~CallTransfers() {
    for (auto& [key, in] : incoming_) keep(*in);
  }

  /// The pieces, which stay as they are until `owner` hears `sent`, go when the receiver asks for them.
  void send(const TransferKey& key, rpc::GatherList pieces, std::shared_ptr<TransferOwner> owner) {
    auto out = std::make_unique<Outgoing>();
    out->pieces.assign(pieces.begin(), pieces.end());
    std::erase_if(out->pieces, [](rpc::Piece piece) { return piece.empty(); });
    out->owner = std::move(owner);
    outgoing_[key] = std::move(out);
  }
  /// Sends no further part.
  void cease(const TransferKey& key) {
    const auto found = outgoing_.find(key);
    if (found == outgoing_.end() || found->second->ceased) return;
    found->second->ceased = true;
    tell_(key.peer,
          {.kind = PacketKind::abandon, .call = key.call, .of_reply = key.of_reply, .count = found->second->parts});
  }
  /// The receiver has memory for `count` more parts. What nobody sends any more is not asked for again.
  void take_ready(const TransferKey& key, std::uint32_t tag, std::uint32_t count) {
    const auto found = outgoing_.find(key);
    if (found == outgoing_.end() || !is_tag(tag)) return;
    found->second->tag = static_cast<int>(tag);
    found->second->asked_for += std::min<std::uint32_t>(count, parts_under_way);
  }

  /// Asks for a message of `size` bytes, not 0.
  void receive(const TransferKey& key, std::uint64_t size, std::shared_ptr<TransferOwner> owner) {
    auto in = std::make_unique<Incoming>();
    in->to_post = size;
    in->owner = std::move(owner);
    int& next = next_tag_[key.peer];
    in->tag = first_tag + next;
    next = (next + 1) % tags;
    Incoming& its = *(incoming_[key] = std::move(in));
    ask(key, its);
  }
  /// Asks for no further part: the sender is about to give up, and says so.
  void withdraw(const TransferKey& key) {
    if (const auto found = incoming_.find(key); found != incoming_.end()) found->second->withdrawn = true;
  }
  /// The sender has sent `count` parts, and sends no more.
  void take_abandon(const TransferKey& key, std::uint32_t count) {
    const auto found = incoming_.find(key);
    if (found == incoming_.end()) return;
    Incoming& in = *found->second;
    in.abandoned = true;
    std::size_t coming = count > in.finished ? count - in.finished : 0;
    for (Posted& posted : in.posted)
      if (coming > 0)
        --coming;
      else
        MPI_Cancel(&posted.request);
  }

  /// Lets transfers go on, and calls `heard(peer)` for the other ends of those that do. Returns whether any did. Throws
  /// MpiError.
  template <class Heard>
  bool advance(Heard&& heard) {
    bool moved = false;
    for (auto at = outgoing_.begin(); at != outgoing_.end();) {
      Outgoing& out = *at->second;
      if (advance_sends(at->first, out)) {
        moved = true;
        heard(at->first.peer);
      }
      if (!out.under_way.empty() || !(out.ceased || out.is_sent())) {
        ++at;
        continue;
      }
      const std::shared_ptr<TransferOwner> owner = std::move(out.owner);
      at = outgoing_.erase(at);
      owner->sent();
      moved = true;
    }
    for (auto at = incoming_.begin(); at != incoming_.end();) {
      Incoming& in = *at->second;
      if (advance_receives(in)) {
        moved = true;
        heard(at->first.peer);
      }
      if (!in.withdrawn && !in.abandoned) ask(at->first, in);
      if (!in.posted.empty() || !(in.abandoned || in.to_post == 0)) {
        ++at;
        continue;
      }
      const std::unique_ptr<Incoming> done = std::move(at->second);
      at = incoming_.erase(at);
      moved = true;
      if (done->withdrawn) continue;
      if (done->abandoned)
        done->owner->given_up();
      else if (!done->wrong.empty())
        done->owner->broken(done->wrong);
      else
        done->owner->received(std::move(done->parts));
    }
    return moved;
  }

  /// The process has ended: MPI reads and writes no memory for it any more.
  void drop(std::size_t peer) {
    for (auto at = outgoing_.begin(); at != outgoing_.end();) {
      if (at->first.peer != peer) {
        ++at;
        continue;
      }
      for (MPI_Request& request : at->second->under_way) MPI_Request_free(&request);
      const std::shared_ptr<TransferOwner> owner = std::move(at->second->owner);
      at = outgoing_.erase(at);
      owner->sent();
    }
    std::erase_if(incoming_, [&](auto& entry) { return entry.first.peer == peer && (keep(*entry.second), true); });
  }
  [[nodiscard]] bool are_under_way() const noexcept { return !outgoing_.empty() || !incoming_.empty(); }
  /// Whether MPI still reads memory for this process.
  [[nodiscard]] bool lends_to(std::size_t peer) const {
    return std::any_of(outgoing_.begin(), outgoing_.end(),
                       [&](const auto& entry) { return entry.first.peer == peer && !entry.second->under_way.empty(); });
  }

 private:
  static constexpr int first_tag = 16;
  static constexpr int tags = 16384;  // MPI has more than 32,767

  struct Outgoing {
    std::vector<rpc::Piece> pieces;
    std::size_t at = 0;  ///< the first piece that is not sent whole
    std::size_t asked_for = 0;
    std::uint32_t parts = 0;  ///< sent
    int tag = 0;
    bool ceased = false;
    std::deque<MPI_Request> under_way;
    std::shared_ptr<TransferOwner> owner;

    [[nodiscard]] bool is_sent() const { return at == pieces.size(); }
  };
  struct Posted {
    MPI_Request request = MPI_REQUEST_NULL;
    ReceivedPart part;
  };
  struct Incoming {
    std::uint64_t to_post = 0;  ///< bytes that were not asked for yet
    int tag = 0;
    bool withdrawn = false;
    bool abandoned = false;
    std::size_t finished = 0;
    std::string wrong;
    std::deque<Posted> posted;
    std::vector<ReceivedPart> parts;
    std::shared_ptr<TransferOwner> owner;
  };

  [[nodiscard]] static bool is_tag(std::uint32_t tag) {
    return tag >= first_tag && tag < static_cast<std::uint32_t>(first_tag + tags);
  }

  bool advance_sends(const TransferKey& key, Outgoing& out) {
    bool moved = false;
    while (!out.under_way.empty()) {
      int done = 0;
      check(MPI_Test(&out.under_way.front(), &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) break;
      out.under_way.pop_front();
      moved = true;
    }
    for (; out.asked_for > 0 && !out.ceased && !out.is_sent(); --out.asked_for) {
      out.under_way.push_back(start_part(key.peer, out));
      ++out.parts;
      moved = true;
    }
    return moved;
  }
  /// Bytes of several pieces are gathered by MPI.
  [[nodiscard]] MPI_Request start_part(std::size_t peer, Outgoing& out) const {
    std::vector<int> sizes;
    std::vector<MPI_Aint> places;
    for (std::size_t room = part_size; room != 0 && !out.is_sent();) {
      rpc::Piece& piece = out.pieces[out.at];
      const rpc::Piece taken = piece.first(std::min(room, piece.size()));
      MPI_Aint place = 0;
      check(MPI_Get_address(taken.data(), &place), "MPI_Get_address");
      sizes.push_back(static_cast<int>(taken.size()));
      places.push_back(place);
      room -= taken.size();
      piece = piece.subspan(taken.size());
      if (piece.empty()) ++out.at;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int to = static_cast<int>(peer);
    if (sizes.size() == 1) {
      check(MPI_Isend(reinterpret_cast<const void*>(places[0]), sizes[0], MPI_BYTE, to, out.tag, comm_, &request),
            "MPI_Isend");
      return request;
    }
    MPI_Datatype gathered = MPI_DATATYPE_NULL;
    check(MPI_Type_create_hindexed(static_cast<int>(sizes.size()), sizes.data(), places.data(), MPI_BYTE, &gathered),
          "MPI_Type_create_hindexed");
    check(MPI_Type_commit(&gathered), "MPI_Type_commit");
    check(MPI_Isend(MPI_BOTTOM, 1, gathered, to, out.tag, comm_, &request), "MPI_Isend");
    check(MPI_Type_free(&gathered), "MPI_Type_free");
    return request;
  }

  void ask(const TransferKey& key, Incoming& in) {
    std::uint32_t asked = 0;
    for (; in.posted.size() < parts_under_way && in.to_post != 0; ++asked) {
      ReceivedPart part;
      part.size = static_cast<std::size_t>(std::min<std::uint64_t>(part_size, in.to_post));
      part.memory.reset(new (std::nothrow) std::byte[part.size]);
      if (!part.memory) {
        in.withdrawn = true;
        in.owner->broken("the receiver has no memory for so many bytes");
        break;
      }
      Posted& posted = in.posted.emplace_back();
      posted.part = std::move(part);
      check(MPI_Irecv(posted.part.memory.get(), static_cast<int>(posted.part.size), MPI_BYTE,
                      static_cast<int>(key.peer), in.tag, comm_, &posted.request),
            "MPI_Irecv");
      in.to_post -= posted.part.size;
    }
    if (asked == 0) return;
    tell_(key.peer, {.kind = PacketKind::ready,
                     .call = key.call,
                     .of_reply = key.of_reply,
                     .tag = static_cast<std::uint32_t>(in.tag),
                     .count = asked});
  }
  bool advance_receives(Incoming& in) {
    bool moved = false;
    for (; !in.posted.empty(); in.posted.pop_front(), ++in.finished, moved = true) {
      Posted& first = in.posted.front();
      int done = 0;
      MPI_Status status;
      const int code = MPI_Test(&first.request, &done, &status);
      if (code == MPI_SUCCESS && done == 0) return moved;
      int cancelled = 0;
      int size = 0;
      if (code == MPI_SUCCESS) {
        check(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
        check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
      }
      if (cancelled != 0) continue;
      if (code != MPI_SUCCESS || static_cast<std::size_t>(size) != first.part.size)
        in.wrong = "a part of a message has another size than it is to have";
      in.parts.push_back(std::move(first.part));
    }
    return moved;
  }
  static void keep(Incoming& in) {
    for (Posted& posted : in.posted) {
      if (posted.request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&posted.request);
      MPI_Request_free(&posted.request);
      keep_until_the_process_ends(std::move(posted.part.memory));
    }
  }

  MPI_Comm comm_;
  const Tell tell_;
  std::map<TransferKey, std::unique_ptr<Outgoing>> outgoing_;
  std::map<TransferKey, std::unique_ptr<Incoming>> incoming_;
  std::vector<int> next_tag_;  ///< by process, so that no two of its transfers have the same at a time
};

}  // namespace dist::mpi::detail
