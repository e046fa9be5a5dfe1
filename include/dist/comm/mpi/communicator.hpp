#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/messages/message_choice.hpp>  // what policies do between members that pass messages
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/transfers.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::mpi {

namespace detail {
class CommunicatorState;
}

/// A process's membership of a group that passes messages through MPI: a handle to copy. The group is a duplicate of
/// the communicator that it is made from, so its messages and errors never meet those of the program.
///
/// One thread at a time calls. Waits end by an error: CollectiveMismatch where members announced different calls, on
/// all of them, after which the group may be used on; PeerError where a member said that it failed; DeadlineExceeded,
/// naming the missing members; Unavailable, where PeerHealth knows that a member is gone. After the last two, or after
/// a failure in the middle of a collective, every later call throws the same again, and the other members are told.
///
/// A member leaves when the last copy of its handle goes, without waiting for the others: those that call a collective
/// after that get a CollectiveMismatch that names it, then and at every later call.
class Communicator {
 public:
  using Transfer = detail::Transfer;

  /// A collective call of all members of `comm`. Throws InvalidArgument where MPI cannot be called or `comm` is not a
  /// group, DeadlineExceeded when not all come.
  explicit Communicator(CommRef comm, CommunicatorOptions options = {});

  /// The same membership, which waits longer or shorter (spec H13). Throws InvalidArgument for a negative timeout.
  [[nodiscard]] Communicator with_timeout(std::chrono::nanoseconds timeout) const;
  /// The same membership, which looks at more or less before a collective: the same on all members.
  [[nodiscard]] Communicator with_checks(CollectiveChecks checks) const;

  [[nodiscard]] std::size_t rank() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] CollectiveChecks checks() const noexcept { return checks_; }
  /// What messages call a member, and where it runs.
  [[nodiscard]] std::size_t worker(std::size_t rank) const noexcept;
  [[nodiscard]] std::string_view host(std::size_t rank) const noexcept;
  /// For what only MPI can do; errors return. A call that blocks wants a Watchdog::Guard.
  [[nodiscard]] MPI_Comm native() const noexcept;
  [[nodiscard]] Watchdog* watchdog() const noexcept;

  /// A group of those members that name the same part, on these; none on members that name none. A collective call.
  [[nodiscard]] std::optional<Communicator> split(std::optional<std::size_t> part, CommunicatorOptions options) const;
  /// A group of the same members, whose messages do not meet those of this one. A collective call.
  [[nodiscard]] Communicator duplicate(CommunicatorOptions options) const;
  /// Whether MPI was initialised with MPI_THREAD_MULTIPLE.
  [[nodiscard]] static bool any_thread_may_communicate();

  /// Lets `health` watch the processes of those members that run on this machine.
  void watch_processes(PeerHealth& health) const;

  void barrier() const;

  /// All members are about to make this call: returns when that is so. Without checks it returns at once.
  void announce(const CollectiveCall& call) const;
  /// Throws PeerError where a peer has said that it failed. For before a call of MPI that blocks;
  /// `between_collectives`, also where it has taken part in the last collective and will not come to the next.
  void look_for_failures(bool between_collectives = false) const;

  /// Whether every later call throws what broke this group.
  [[nodiscard]] bool is_broken() const noexcept;

  /// Where this member's calls stand (CallSequence).
  void begin_run(std::uint64_t kind) const noexcept;
  void begin_alone() const noexcept;
  void end_run() const noexcept;
  void begin_call() const noexcept;
  void set_structure(std::uint64_t structure) const noexcept;
  /// Every member is a process.
  [[nodiscard]] static constexpr SelfCommunicator local() noexcept { return {}; }

  /// Starts a new attempt: from here on a failure is reported again.
  void begin_attempt() const noexcept;
  /// Tells the peers, instead of taking part in the next collective, that this process failed and why: they throw what
  /// the notice says there. Does nothing where they know already: they were told in this attempt, or saw it themselves.
  void cancel(const FailureNotice& notice) const noexcept;
  /// No peer is a thread of this process.
  void cancel(const std::exception_ptr&) const noexcept {}

  /// At most 2^31 - 1 bytes at a time.
  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) const;
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) const;
  void wait(Transfer& transfer) const;

  /// At least so many bytes, aligned to a cache line, until the next call with this `which`, of 0 to 3.
  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) const;

 private:
  std::shared_ptr<detail::CommunicatorState> state_;
  std::int64_t timeout_;
  CollectiveChecks checks_;
};

}  // namespace dist::mpi

#ifndef DIST_COMPILED_MPI
#include <dist/comm/mpi/communicator.ipp>
#endif
