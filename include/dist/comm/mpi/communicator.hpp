#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/messages/message_choice.hpp>  // defines the algorithms, as PassesMessages requires
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/transfers.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::mpi {

namespace detail {
class CommunicatorState;
}

/// A process's membership in a group that passes messages through MPI; a copyable handle. The group uses a duplicate of
/// the given communicator, so its messages and errors are separate from the program's.
///
/// One thread at a time may call. Waits end with an error: CollectiveMismatch on all members if they announced
/// different calls, after which the group stays usable; PeerError if a member reported a failure; DeadlineExceeded,
/// naming the missing members; Unavailable if PeerHealth reports a lost member. After the last two, or a failure in the
/// middle of a collective, every later call throws the same error, and the other members are notified.
///
/// A member leaves, without waiting, when the last copy of its handle is destroyed. Members that call a collective
/// after that throw CollectiveMismatch, naming it, then and in every later call.
class Communicator {
 public:
  using Transfer = detail::Transfer;

  /// A collective call of all members of `comm`. Throws InvalidArgument if MPI cannot be called or `comm` is not a
  /// group, DeadlineExceeded if members are missing.
  explicit Communicator(CommRef comm, CommunicatorOptions options = {});

  /// Returns the same membership with another timeout (spec H13). Throws InvalidArgument if it is negative.
  [[nodiscard]] Communicator with_timeout(std::chrono::nanoseconds timeout) const;
  /// Returns the same membership with other checks, the same on all members.
  [[nodiscard]] Communicator with_checks(CollectiveChecks checks) const;

  [[nodiscard]] std::size_t rank() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// The checks before each collective.
  [[nodiscard]] CollectiveChecks checks() const noexcept { return checks_; }
  /// The number of a member in messages, and its host.
  [[nodiscard]] std::size_t worker(std::size_t rank) const noexcept;
  [[nodiscard]] std::string_view host(std::size_t rank) const noexcept;
  /// The MPI communicator, for direct calls; errors return. Protect blocking calls by a Watchdog::Guard.
  [[nodiscard]] MPI_Comm native() const noexcept;
  /// The watchdog of blocking calls; null: none.
  [[nodiscard]] Watchdog* watchdog() const noexcept;

  /// Creates a group of the members with the same `part`. Empty if `part` is empty. A collective call.
  [[nodiscard]] std::optional<Communicator> split(std::optional<std::size_t> part, CommunicatorOptions options) const;
  /// Creates a group of the same members with separate messages. A collective call.
  [[nodiscard]] Communicator duplicate(CommunicatorOptions options) const;
  /// True if MPI was initialised with MPI_THREAD_MULTIPLE.
  [[nodiscard]] static bool any_thread_may_communicate();

  /// Lets `health` monitor the processes of members on this machine.
  void watch_processes(PeerHealth& health) const;

  void barrier() const;

  /// Announces a call; returns when all members have announced the same one. Returns at once without checks.
  void announce(const CollectiveCall& call) const;
  /// Throws PeerError if a peer has reported a failure. For use before blocking MPI calls. With `between_collectives`,
  /// also if the peer completed the last collective but does not enter the next one.
  void look_for_failures(bool between_collectives = false) const;

  /// True if every later call throws the error that broke this group.
  [[nodiscard]] bool is_broken() const noexcept;

  /// Records the position of this member's calls (CallSequence).
  void begin_run(std::uint64_t kind) const noexcept;
  void begin_alone() const noexcept;
  void end_run() const noexcept;
  void begin_call() const noexcept;
  void set_structure(std::uint64_t structure) const noexcept;
  /// A group of one, because every member is a process.
  [[nodiscard]] static constexpr SelfCommunicator local() noexcept { return {}; }

  /// Starts a unit of work: after it, a failure is reported again.
  void begin_attempt() const noexcept;
  /// Reports this process's failure to the peers, instead of taking part in the next collective; they throw the error
  /// of the notice. Does nothing if they already know, by a report since `begin_attempt` or from their own calls.
  void cancel(const FailureNotice& notice) const noexcept;
  void cancel(const std::exception_ptr&) const noexcept {}

  /// Starts to send at most 2^31 - 1 bytes.
  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) const;
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) const;
  void wait(Transfer& transfer) const;

  /// Returns memory of at least `bytes` bytes, aligned to a cache line, valid until the next call with the same `which`
  /// (0 to 3).
  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) const;

 private:
  std::shared_ptr<detail::CommunicatorState> state_;
  std::int64_t timeout_;
  CollectiveChecks checks_;
};

/// The communicator of the members with the same colour, ranked by key, then by rank. Owns the communicator; objects
/// created from it use duplicates.
class SplitComm {
 public:
  /// A collective call of all members of `group`. Throws InvalidArgument if colour or key exceed int.
  SplitComm(const Communicator& group, std::size_t color, std::size_t key) {
    constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (color > largest || key > largest)
      throw InvalidArgument("A colour or key is too large for MPI", concat("colour ", color, ", key ", key),
                            concat("Give numbers up to ", largest));
    const CollectiveCall call{.operation = "MPI_Comm_split"};
    const Watchdog::Guard guard{group.watchdog(), call};
    DIST_MPI_CALL(MPI_Comm_split(group.native(), static_cast<int>(color), static_cast<int>(key), &comm_));
  }
  /// Takes ownership of the communicator.
  SplitComm(SplitComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  SplitComm& operator=(SplitComm&&) = delete;
  ~SplitComm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  /// Refers to the communicator, for the constructor of Communicator.
  [[nodiscard]] CommRef comm() const noexcept { return CommRef{comm_}; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace dist::mpi

#ifdef DIST_COMPILED
extern template class dist::detail::MessageCollectives<dist::mpi::Communicator,
                                                       dist::detail::MessageRing<dist::mpi::Communicator>>;
extern template class dist::detail::MessageCollectives<dist::mpi::Communicator,
                                                       dist::detail::MessageChoice<dist::mpi::Communicator>>;
#else
#include <dist/comm/mpi/communicator.ipp>
#endif
