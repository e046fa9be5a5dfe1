#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/messages/call_agreement.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/call_messages.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/handshake.hpp>
#include <dist/comm/mpi/shutdown_notice.hpp>
#include <dist/comm/mpi/small_messages.hpp>
#include <dist/comm/mpi/transfers.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist::mpi::detail {

/// The state shared by the copies of one member's communicator.
class CommunicatorState : public std::enable_shared_from_this<CommunicatorState> {
 public:
  using Transfer = detail::Transfer;

  CommunicatorState(CommRef comm, CommunicatorOptions options)
      : options_(std::move(options)),
        timeout_(dist::detail::longest_wait(options_.timeout)),
        rank_((require_group(comm), rank_in(comm.get()))),
        meeting_(rank_, size_of(comm.get())) {
    const std::unique_ptr<Handshake> introduced = introduce(comm, options_);
    comm_ = introduced->comm;
    if (introduced->count_near(rank_) > static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)))
      spins_ = spins_on_shared_core;
    members_ = std::move(introduced->members);
    departures_ = std::make_unique<ShutdownNotice>(comm_, departure_tag);
    calls_.emplace(comm_, call_tag, meeting_);
  }
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;
  ~CommunicatorState() {
    if (broken_) static_cast<void>(departures_.release());  // MPI_Finalize needs it after static destruction
    if (broken_ || !is_running()) return;
    try {
      if (std::uncaught_exceptions() == 0)
        ShutdownNotice::leave(std::move(departures_), sequence() + 1);
      else  // the peers are notified in another way
        departures_.release()->leave_at_finalize(sequence() + 1);
    } catch (...) {
      // The peers reach their deadline.
    }
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] MPI_Comm native() const noexcept { return comm_; }
  [[nodiscard]] std::int64_t timeout() const noexcept { return timeout_; }
  [[nodiscard]] const CommunicatorOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t worker(std::size_t rank) const noexcept { return members_[rank].worker; }
  [[nodiscard]] std::string_view host(std::size_t rank) const noexcept { return members_[rank].host.data(); }

  void watch_processes(PeerHealth& health) const { watch_near(members_, rank_, health); }

  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }

  /// Throws InvalidArgument if this thread may not call MPI, or the error that broke the group.
  void require_usable(std::string_view call) const {
    permit_.require(call);
    if (broken_) std::rethrow_exception(broken_);
  }

  /// Counts a collective without checks, for notices. Throws a peer's reported failure if the peer does not enter it.
  void count(std::string_view call) {
    place().require_shared(call);
    if (const std::optional<NoticeFrom> known = board().count()) raise(*known);
  }
  /// Announces a call and returns when all members have announced the same one. Throws a member's failure in the
  /// current or a later run or call. After a failure in an earlier run, which does not affect others, the members
  /// repeat the announcement.
  void meet(CollectiveCall call, std::int64_t timeout) {
    place().require_shared(call.operation);
    call.structure = structure_;
    meeting_.begin(call);
    try {
      agree(timeout);
    } catch (...) {
      meeting_.end();
      throw;
    }
    meeting_.end();
  }

  [[nodiscard]] CallSequence& place() noexcept { return board().place(); }
  /// Sets the structure to which later calls belong; 0: none.
  void set_structure(std::uint64_t structure) noexcept { structure_ = structure; }

  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) {
    return transfers_.start_send(comm_, bytes, to, data_tag());
  }
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) {
    return transfers_.start_receive(comm_, bytes, from, data_tag());
  }
  void wait(Transfer& transfer, std::int64_t timeout) {
    poll_until(
        spins_, timeout, [&] { return Transfers::is_done(transfer); }, [&] { look(transfer.peer); },
        [&] {
          fail(DeadlineExceeded(
              concat("Not all workers took part in a collective in time: ", name(transfer.peer), " did not"),
              concat(described(), " and waited ", std::chrono::nanoseconds{timeout},
                     " for bytes to or from that worker"),
              "Find out what it waits for, or give the strategy a longer timeout"));
        });
    transfers_.finish(transfer);
  }

  /// Throws a peer's reported failure, if any. For use before calls that cannot be interrupted. With
  /// `between_collectives`, also if a peer does not enter the next collective.
  void look_for_failures(bool between_collectives) {
    take_notices();
    if (!between_collectives) return;
    if (const std::optional<NoticeFrom> known = board().find_abandoned(sequence() + 1)) raise(*known);
  }

  /// Starts a unit of work: after it, a failure is reported again.
  void begin_attempt() noexcept { board().begin_attempt(); }
  /// Reports this process's failure to the peers, instead of taking part in the next collective. Does nothing if they
  /// already know, by a report since `begin_attempt` or from their own calls, or in a run of this process alone.
  void cancel(const FailureNotice& failure) noexcept {
    if (size() == 1 || board().all_know() || place().is_alone() || broken_ || !is_running()) return;
    try {
      permit_.require("a failure notice");
      send_to_all(meeting_.cancel(failure));
      if (!transfers_.are_under_way()) return tell_failures();
      try {
        failure.raise(worker(rank_), host(rank_));
      } catch (const Error&) {
        break_with(std::current_exception());
      }
    } catch (...) {
      broken_ = std::current_exception();  // the peers reach their deadline
    }
  }

  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) {
    DIST_EXPECT(which < scratch_.size());
    AlignedBuffer<std::byte>& buffer = scratch_[which];
    if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
    return buffer.data();
  }

 private:
  using BroughtCall = dist::detail::BroughtCall;
  using CallAgreement = dist::detail::CallAgreement;
  using Notice = dist::detail::Notice;
  using NoticeBoard = dist::detail::NoticeBoard;
  using NoticeFrom = dist::detail::NoticeFrom;

  static constexpr int call_tag = 2;
  static constexpr int notice_tag = 3;
  static constexpr int departure_tag = 4;
  static constexpr std::int64_t second = 1'000'000'000;
  /// Nanoseconds by which members that directly wait for a late member give up earlier than others, because they know
  /// its name.
  static constexpr std::int64_t direct_word = second / 5;

  [[nodiscard]] NoticeBoard& board() noexcept { return meeting_.board(); }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return meeting_.board().sequence(); }
  /// A tag per collective, so that messages of an interrupted one are not mistaken for another's.
  [[nodiscard]] int data_tag() const noexcept { return 16 + static_cast<int>(sequence() % 16384); }

  void agree(std::int64_t timeout) {
    advance(timeout);
    while (meeting_.is_waiting()) {
      const std::uint64_t stage = meeting_.stage();
      std::int64_t late_since = 0;
      poll_until(
          spins_, timeout, [&] { return advance(timeout), meeting_.stage() != stage; }, [&] { look(); },
          [&] {
            const std::int64_t now = dist::detail::monotonic_nanoseconds();
            if (late_since == 0) late_since = now;
            if (!meeting_.hears_indirectly() || now - late_since > direct_word) throw_late_to_meet(timeout);
          });
    }
    await_sent(timeout);
    if (meeting_.state() == CallAgreement::State::failed) raise(meeting_.failure());
    if (meeting_.state() == CallAgreement::State::different) throw mismatch_with(meeting_.different_call());
  }
  /// Processes arrived messages of the meeting.
  void advance(std::int64_t timeout) {
    calls_->receive();
    meeting_.advance([&](std::size_t partner, const CallAgreement::Message& message) {
      if (!message.settles()) await_sent(timeout);
      calls_->send(partner, message);
    });
  }
  void await_sent(std::int64_t timeout) {
    poll_until(
        spins_, timeout, [&] { return calls_->are_sent(); }, [&] { look(); }, [&] { throw_late_to_meet(timeout); });
  }
  /// Waits up to a second until the calls are sent, when leaving a collective. Returns false if they are not; small
  /// messages usually leave soon.
  [[nodiscard]] bool calls_leave() {
    bool late = false;
    poll_until(
        spins_, second, [&] { return calls_->are_sent() || late; }, [] {}, [&] { late = true; });
    return !late;
  }

  /// Called about every millisecond while waiting for bytes of `peer`, or in the meeting: throws if a member has failed
  /// or is lost.
  void look(std::optional<std::size_t> peer = std::nullopt) {
    SlowWait::note_innermost([&] {
      std::optional<std::size_t> awaited = peer;
      meeting_.for_each_awaited([&](std::size_t each) { awaited = awaited.value_or(each); });
      return concat("for ", awaited ? name(*awaited) : "the others", " in ", describe(meeting_.mine().call()));
    });
    departures_->look();
    take_notices();  // failures that a member reported before it left
    // A departed member does not forward messages about failures either.
    const std::uint64_t step = sequence() + (meeting_.is_settling() ? 1 : 0);
    for (std::size_t member = 0; member < size(); ++member)
      if (departures_->has_left(member, step)) raise_left(member);
    if (options_.health == nullptr) return;
    if (peer) return look_for_loss(*peer);
    look_for_loss(std::nullopt);
    meeting_.for_each_awaited([&](std::size_t each) { look_for_loss(each); });
  }
  void look_for_loss(std::optional<std::size_t> peer) {
    if (const std::optional<LostPeer> lost =
            options_.health->find_lost(peer ? std::optional{worker(*peer)} : std::nullopt)) {
      // Its last notice is more precise. MPI_Iprobe checks before it makes progress, so a message may only show in the
      // next call.
      for (int again = 0; again < 3; ++again) take_notices();
      fail(unavailable(*lost));
    }
  }

  void take_notices() {
    take_messages<Notice>(comm_, notice_tag, [&](std::size_t peer, const Notice& notice) {
      const std::optional<NoticeFrom> thrown = board().hear({notice, peer});
      tell_failures();
      if (thrown) raise_interrupting(*thrown);
    });
  }
  void tell_failures() {
    meeting_.tell_failures(
        [&](std::size_t partner, const CallAgreement::Message& message) { calls_->send(partner, message); });
  }
  void send_to_all(const Notice& notice) { outbox_.send_to_others(comm_, notice_tag, notice); }

  [[noreturn]] void raise(const NoticeFrom& failure) {
    tell_failures();
    failure.notice.failure.raise(worker(failure.peer), host(failure.peer));
  }
  /// Throws the failure; breaks the group if the current operation cannot be undone.
  [[noreturn]] void raise_interrupting(const NoticeFrom& failure) {
    const bool breaks = failure.notice.failure.breaks_the_group() || transfers_.are_under_way() || !calls_leave();
    try {
      raise(failure);
    } catch (...) {
      if (breaks) break_with(std::current_exception());
      throw;
    }
  }
  /// Throws because a member has left. A failure that it reported before is more precise.
  [[noreturn]] void raise_left(std::size_t peer) {
    try {
      if (const FailureNotice* const before = board().skipped_of(peer)) before->raise(worker(peer), host(peer));
      throw dist::detail::worker_left(
          name(peer), described(),
          sequence() == 1 ? "last collective: none"
                          : concat("last collective: ", describe(meeting_.last().call()), ", step ", sequence() - 1));
    } catch (...) {
      break_with(std::current_exception());
      throw;
    }
  }

  /// Notifies the peers that this member cannot continue, and throws, now and in later calls.
  template <class E>
  [[noreturn]] void fail(const E& error) {
    const Notice notice = board().fail(error);
    break_with(std::make_exception_ptr(error));
    try {
      send_to_all(notice);
    } catch (const Error&) {
      // The peers reach their deadline.
    }
    throw error;
  }
  void break_with(std::exception_ptr why) {
    if (!broken_) departures_->leave_at_finalize(sequence() + 1);  // the peers know, or will notice
    broken_ = std::move(why);
    calls_->cancel_receives();
    transfers_.cancel_receives();
    // Transfers in progress use the memory of this object.
    static std::mutex one_at_a_time;
    static auto& kept_until_the_process_ends = *new std::vector<std::shared_ptr<CommunicatorState>>;
    const std::lock_guard lock{one_at_a_time};
    kept_until_the_process_ends.push_back(shared_from_this());
  }

  [[nodiscard]] std::string name(std::size_t rank) const {
    return concat("worker ", worker(rank), " (host ", host(rank), ")");
  }
  [[nodiscard]] std::string described(std::size_t rank, const CollectiveCallRecord& call) const {
    return concat(name(rank), " called ", describe(call.call()), " as step ", sequence(),
                  " of the collectives between these workers");
  }
  [[nodiscard]] std::string described() const { return described(rank_, meeting_.mine()); }
  /// The last call of members missing in this collective: all took part in the previous one.
  [[nodiscard]] std::string last_call() const {
    if (sequence() == 1) return "last collective: none";
    return concat("last collective: ", describe(meeting_.last().call()), ", step ", sequence() - 1);
  }
  [[nodiscard]] CollectiveMismatch mismatch_with(const BroughtCall& other) const {
    return dist::detail::different_calls("worker", meeting_.mine().call(), described(), other.call.call(),
                                         described(static_cast<std::size_t>(other.rank), other.call));
  }
  /// The members that have not arrived, as far as known.
  [[nodiscard]] std::string missing() const {
    constexpr std::size_t most_names = 8;
    std::string names;
    std::size_t count = 0;
    meeting_.for_each_missing([&](std::size_t peer) {
      if (++count <= most_names) names += concat(names.empty() ? "" : ", ", name(peer));
    });
    if (count > most_names) names += concat(" and ", count - most_names, " others");
    if (names.empty()) return "some";
    return meeting_.hears_indirectly() ? concat("at least one of ", names) : names;
  }
  [[noreturn]] void throw_late_to_meet(std::int64_t timeout) {
    // More precise than the name of a missing member.
    if (const std::optional<BroughtCall> other = meeting_.find_different()) fail(mismatch_with(*other));
    fail(dist::detail::workers_missing(missing(), described(), timeout, last_call()));
  }

  CommunicatorOptions options_;
  std::int64_t timeout_;
  std::size_t rank_;
  CallAgreement meeting_;
  unsigned spins_ = spins_on_own_core;
  ThreadPermit permit_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MemberIdentity> members_;
  std::unique_ptr<ShutdownNotice> departures_;
  std::optional<CallMessages> calls_;
  Transfers transfers_;
  Outbox outbox_;
  std::uint64_t structure_ = 0;
  std::array<AlignedBuffer<std::byte>, 4> scratch_;
  std::exception_ptr broken_;
};

}  // namespace dist::mpi::detail
