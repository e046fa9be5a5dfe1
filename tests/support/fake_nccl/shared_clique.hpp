// Ranks of a communicator in several processes of this machine.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fake_nccl {

/// A rank's call, for comparison by the others.
struct SharedCall {
  std::int64_t kind = 0, count = 0, type = 0, op = 0, root = 0;
  friend bool operator==(const SharedCall&, const SharedCall&) = default;
};

/// The memory that a rank contributes to a call of all ranks' processes, if any.
struct SharedHostCall {
  std::uint64_t kind = 0, bytes = 0;
  std::uint64_t process = 0, address = 0, file = 0;

  [[nodiscard]] bool agrees_with(const SharedHostCall& other) const {
    return kind == other.kind && bytes == other.bytes;
  }
};

/// Shared memory with the arrivals of ranks, the inputs of their last two collectives, and the last messages between
/// them. It has no name and no locks, which a killed process could leave: each rank writes its own part, which others
/// read once its counter allows.
class SharedClique {
 public:
  static constexpr std::size_t most_ranks = 16;
  static constexpr std::size_t most_bytes = std::size_t{8} << 20;  // input of a rank
  static constexpr std::size_t most_messages = 4;  // messages from one rank to another that were not received yet
  static constexpr std::size_t most_message_bytes = std::size_t{512} << 10;

  SharedClique();
  /// Attaches to the clique of the process that made `id`.
  explicit SharedClique(const ncclUniqueId& id);
  SharedClique(const SharedClique&) = delete;
  SharedClique& operator=(const SharedClique&) = delete;
  ~SharedClique();

  /// The id by which it is found while this process lives.
  [[nodiscard]] ncclUniqueId id() const;
  /// True if this process made `id`.
  [[nodiscard]] static bool is_own(const ncclUniqueId& id);

  /// Registers a rank with its GPU, as a number that identifies it. Returns false if the rank is registered already, or
  /// the number of ranks differs.
  [[nodiscard]] bool come(std::size_t rank, std::size_t ranks, std::uint64_t gpu);
  [[nodiscard]] bool have_all_come() const;
  [[nodiscard]] bool has_gpu_twice() const;

  /// True if a rank may contribute to collective `number`: all ranks have taken its input from the last but one.
  [[nodiscard]] bool may_bring(std::uint64_t number) const;
  void bring(std::size_t rank, std::uint64_t number, const SharedCall& call, std::span<const std::byte> values);
  [[nodiscard]] bool have_all_brought(std::uint64_t number) const;
  [[nodiscard]] const SharedCall& call_of(std::size_t rank, std::uint64_t number) const;
  [[nodiscard]] std::span<const std::byte> brought_by(std::size_t rank, std::uint64_t number) const;
  /// Marks that the rank is done with collective `number`.
  void take(std::size_t rank, std::uint64_t number);

  /// Message `number` from one rank to another: the receiver announces that it is ready, the sender writes the message
  /// when there is room, and the receiver takes it.
  void come_for(std::size_t from, std::size_t to, std::uint64_t number);
  [[nodiscard]] bool has_come_for(std::size_t from, std::size_t to, std::uint64_t number) const;
  [[nodiscard]] bool may_send(std::size_t from, std::size_t to, std::uint64_t number) const;
  void send(std::size_t from, std::size_t to, std::uint64_t number, const SharedCall& call,
            std::span<const std::byte> values);
  [[nodiscard]] bool is_sent(std::size_t from, std::size_t to, std::uint64_t number) const;
  [[nodiscard]] const SharedCall& call_of_message(std::size_t from, std::size_t to, std::uint64_t number) const;
  [[nodiscard]] std::span<const std::byte> message(std::size_t from, std::size_t to, std::uint64_t number) const;
  void take_message(std::size_t from, std::size_t to, std::uint64_t number);

  /// Calls of all hosts, with separate numbers. All leave one call before any joins the next.
  [[nodiscard]] bool may_come_to(std::uint64_t number) const;
  void come_to(std::uint64_t number, std::size_t rank, const SharedHostCall& call);
  [[nodiscard]] bool have_all_come_to(std::uint64_t number) const;
  [[nodiscard]] const SharedHostCall& host_call_of(std::size_t rank) const;
  void leave(std::uint64_t number, std::size_t rank);

  void abort();
  [[nodiscard]] bool is_aborted() const;

 private:
  struct Brought {
    SharedCall call;
    std::uint64_t bytes;
  };
  struct alignas(64) Rank {
    std::atomic<std::uint64_t> gpu;  // plus 1; 0 if absent
    std::atomic<std::uint64_t> brought;
    std::atomic<std::uint64_t> taken;
    Brought last[2];
    std::atomic<std::uint64_t> host_came;
    std::atomic<std::uint64_t> host_left;
    SharedHostCall host_call;
  };
  struct alignas(64) Channel {
    std::atomic<std::uint64_t> come_for;
    std::atomic<std::uint64_t> sent;
    std::atomic<std::uint64_t> taken;
    Brought last[most_messages];
  };
  struct Header {
    std::atomic<std::uint64_t> ranks;
    std::atomic<std::uint64_t> is_aborted;
    Rank of[most_ranks];
    Channel between[most_ranks][most_ranks];
  };
  static constexpr std::size_t bytes =
      sizeof(Header) + 2 * most_ranks * most_bytes + most_ranks * most_ranks * most_messages * most_message_bytes;

  void map();
  [[nodiscard]] std::byte* values(std::size_t rank, std::uint64_t number) const;
  [[nodiscard]] std::byte* values(std::size_t from, std::size_t to, std::uint64_t number) const;

  int file_ = -1;
  Header* header_ = nullptr;
};

}  // namespace fake_nccl
