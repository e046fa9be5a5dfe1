#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/call_place.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/longest_wait.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator_options.hpp>
#include <dist/comm/mpi/departures.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist::mpi {

namespace detail {

/// What a member tells the others about itself.
struct MemberIdentity {
  std::uint64_t worker = 0;
  std::uint64_t process_space = 0;
  std::int64_t pid = 0;
  std::array<char, 256> host{};
};

/// What the copies of one member's communicator share.
class CommunicatorState : public std::enable_shared_from_this<CommunicatorState> {
 public:
  using Transfer = detail::Transfer;

  CommunicatorState(CommRef comm, CommunicatorOptions options)
      : options_(std::move(options)), timeout_(dist::detail::longest_wait(options_.timeout)) {
    int inter = 0;
    if (comm.get() != MPI_COMM_NULL) check(MPI_Comm_test_inter(comm.get(), &inter), "MPI_Comm_test_inter");
    if (comm.get() == MPI_COMM_NULL || inter != 0)
      throw InvalidArgument(
          "A communicator of MPI does not hold a group of workers",
          inter != 0 ? "it joins two groups" : "it is MPI_COMM_NULL, as for those left out of a group",
          "Give a communicator of one group, on its members only");
    int number = 0;
    check(MPI_Comm_rank(comm.get(), &number), "MPI_Comm_rank");
    rank_ = static_cast<std::size_t>(number);
    check(MPI_Comm_size(comm.get(), &number), "MPI_Comm_size");
    size_ = static_cast<std::size_t>(number);
    auto meeting = std::make_unique<Meeting>();
    try {
      introduce(comm.get(), *meeting);
    } catch (...) {
      // Transfers that are still on their way use this memory.
      static std::vector<std::unique_ptr<Meeting>> kept_until_the_process_ends;
      kept_until_the_process_ends.push_back(std::move(meeting));
      throw;
    }
    comm_ = meeting->comm;
    departures_ = std::make_unique<Departures>(comm_, departure_tag);
    members_ = std::move(meeting->members);
    const auto here = std::count_if(members_.begin(), members_.end(), [&](const MemberIdentity& member) {
      return member.process_space == members_[rank_].process_space;
    });
    if (here > sysconf(_SC_NPROCESSORS_ONLN)) spins_ = spins_on_shared_core;
    records_.resize(size_);
    skipped_.resize(size_);
    heard_.resize(size_);
    receives_.resize(size_, MPI_REQUEST_NULL);
    sends_.resize(size_, MPI_REQUEST_NULL);
  }
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;
  ~CommunicatorState() {
    // The peers of a broken group know that already, and of an exception they are told in another way.
    if (broken_ || std::uncaught_exceptions() != 0 || !is_running()) return;
    try {
      Departures::leave(std::move(departures_), sequence_ + 1);
    } catch (...) {
      // They notice at their own deadline.
    }
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] MPI_Comm native() const noexcept { return comm_; }
  [[nodiscard]] std::int64_t timeout() const noexcept { return timeout_; }
  [[nodiscard]] const CommunicatorOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t worker(std::size_t rank) const noexcept { return members_[rank].worker; }
  [[nodiscard]] std::string_view host(std::size_t rank) const noexcept { return members_[rank].host.data(); }

  void watch_processes(PeerHealth& health) const {
    const MemberIdentity& me = members_[rank_];
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_ && me.process_space != 0 && members_[peer].process_space == me.process_space)
        health.watch_process(worker(peer), host(peer), static_cast<pid_t>(members_[peer].pid));
  }

  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }

  /// Throws where this thread may not call MPI, or what broke this communicator.
  void require_usable(std::string_view call) const {
    permit_.require(call);
    if (broken_) std::rethrow_exception(broken_);
  }

  /// A collective that is not checked. It is counted, so that a notice can say in which one its sender is missing.
  /// Throws what a peer said of its failure if it does not come to this one.
  void count() {
    ++sequence_;
    all_know_ = false;
    if (is_abandoned(sequence_)) raise_later();
  }
  /// Tells all members of a call and returns when all have told the same. A failure of one of them in the run or call
  /// that this member is in, or in a later one, is thrown here; after one in an earlier run, which concerns nobody else,
  /// the members tell each other again.
  void meet(CollectiveCall call, std::int64_t timeout) {
    if (own_failure_ == sequence_ && sequence_ != 0) settle(timeout);
    if (place_.is_closed()) raise_closed();
    call.structure = structure_;
    last_ = mine_.call;
    meets_ = true;
    try {
      do call.place = place_.mark();
      while (!try_meet(call, timeout));
    } catch (...) {
      meets_ = false;
      throw;
    }
    meets_ = false;
    succeeded_ = sequence_;
    place_.met();
    last_skipped_.reset();
  }

  /// Where this member's calls stand.
  [[nodiscard]] CallPlace& place() noexcept { return place_; }
  /// This member's calls from here on are parts of a collective of values with this structure; 0: of none.
  void set_structure(std::uint64_t structure) noexcept { structure_ = structure; }

  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) {
    DIST_EXPECT(bytes.size() <= most_bytes);
    Transfer transfer{.peer = to};
    check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(to), data_tag(), comm_,
                    &transfer.request),
          "MPI_Isend");
    return begun(transfer, false);
  }
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) {
    DIST_EXPECT(bytes.size() <= most_bytes);
    Transfer transfer{.peer = from};
    check(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(from), data_tag(), comm_,
                    &transfer.request),
          "MPI_Irecv");
    return begun(transfer, true);
  }
  void finish(Transfer& transfer, std::int64_t timeout) {
    poll_until(
        spins_, timeout,
        [&] {
          int done = 0;
          check(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
          return done != 0;
        },
        [&] { look(transfer.peer); },
        [&] {
          give_up(DeadlineExceeded(
              text("Not all workers took part in a collective in time: ", name(transfer.peer), " did not"),
              text(described(rank_), " and waited ", seconds(timeout), " s for bytes to or from that worker"),
              "Find out what it waits for, or give the strategy a longer timeout"));
        });
    under_way_[transfer.place] = MPI_REQUEST_NULL;
    free_places_.push_back(transfer.place);
  }

  /// Throws what a peer said about its failure, if one did. Call it before a call that cannot be interrupted.
  /// With `between_collectives`, also if a peer will not take part in the next collective.
  void look_for_failures(bool between_collectives) {
    take_notices();
    if (between_collectives && is_abandoned(sequence_ + 1)) raise_later();
  }

  /// Starts a new attempt: from here on a failure is reported again.
  void begin_attempt() noexcept { all_know_ = false; }
  /// Tells the peers, instead of taking part in the next collective, why this process does not. Does nothing where they
  /// know already: they were told in this attempt, or saw it themselves.
  void abandon(const FailureNotice& failure) noexcept {
    if (size_ == 1 || all_know_ || broken_ || !is_running()) return;
    try {
      permit_.require("A notice of a failure");
      all_know_of(sequence_ + 1);
      mine_.call = CollectiveCallRecord{{.operation = "a failure"}};
      send_notices(failure);
      own_failure_ = sequence_;
      note({{sequence_, place_.position(), failure}, rank_});
      if (free_places_.size() != under_way_.size()) {
        try {
          failure.raise(worker(rank_), host(rank_));
        } catch (const Error&) {
          break_with(std::current_exception());
        }
      }
    } catch (...) {
      broken_ = std::current_exception();  // the peers notice at their deadline
    }
  }

  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) {
    DIST_EXPECT(which < scratch_.size());
    AlignedBuffer<std::byte>& buffer = scratch_[which];
    if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
    return buffer.data();
  }

 private:
  static constexpr std::size_t most_bytes = std::numeric_limits<int>::max();
  static constexpr int identity_tag = 1;
  static constexpr int record_tag = 2;
  static constexpr int notice_tag = 3;
  static constexpr int departure_tag = 4;

  struct Record {
    std::uint64_t sequence = 0;
    CollectiveCallRecord call;
  };
  /// Says that a member will not take part in collective `sequence`.
  struct Notice {
    std::uint64_t sequence = 0;
    CallPlace::Position place;
    FailureNotice failure;
  };
  struct NoticeFrom {
    Notice notice;
    std::size_t peer;
  };
  struct OutgoingNotice {
    Notice notice;
    std::vector<MPI_Request> requests;
  };

  /// What the members of a new group send each other.
  struct Meeting {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<MPI_Request> requests;
    std::vector<MemberIdentity> members;
  };

  /// The tag of this collective's messages, so that those of an interrupted one are never taken for another's.
  [[nodiscard]] int data_tag() const noexcept { return 16 + static_cast<int>(sequence_ % 16384); }

  /// Makes the group's communicator; its members tell each other who they are.
  void introduce(MPI_Comm comm, Meeting& meeting) {
    std::vector<MPI_Request>& requests = meeting.requests;
    requests.assign(1, MPI_REQUEST_NULL);
    check(MPI_Comm_idup(comm, &meeting.comm, requests.data()), "MPI_Comm_idup");
    wait(requests, text("The making of a group of ", size_, " workers"), options_.timeout, options_.health);
    check(MPI_Comm_set_errhandler(meeting.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    meeting.members.resize(size_);
    MemberIdentity& me = meeting.members[rank_];
    me.worker = options_.worker.value_or(rank_);
    me.process_space = process_space();
    me.pid = getpid();
    if (options_.host.empty())
      gethostname(me.host.data(), me.host.size() - 1);
    else
      store(options_.host, me.host);
    requests.clear();
    for (std::size_t peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      check(MPI_Irecv(&meeting.members[peer], sizeof(MemberIdentity), MPI_BYTE, static_cast<int>(peer), identity_tag,
                      meeting.comm, &requests.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Irecv");
      check(MPI_Isend(&me, sizeof(me), MPI_BYTE, static_cast<int>(peer), identity_tag, meeting.comm,
                      &requests.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend");
    }
    wait(requests, text("The introduction of ", size_, " workers"), options_.timeout, options_.health);
  }

  /// After a failure of its own this member waits until every peer has come to the collective that it did not come to,
  /// or has gone on: a failure of a peer there may concern its next call, too.
  void settle(std::int64_t timeout) {
    for (std::size_t peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      if (records_[peer].sequence < sequence_ && receives_[peer] == MPI_REQUEST_NULL) receive_record(peer);
      poll_until(
          spins_, timeout,
          [&] { return heard_[peer] >= sequence_ || record_came(peer) || records_[peer].sequence > sequence_; },
          [&] { look(peer); }, [&] { throw_late_to_meet(timeout); });
    }
    for (int again = 0; again < 3; ++again) take_notices();  // what was sent before: MPI looks before it works
  }

  /// Whether all came. If not, and all failures are of earlier runs, the members tell each other again.
  [[nodiscard]] bool try_meet(const CollectiveCall& call, std::int64_t timeout) {
    ++sequence_;
    all_know_ = false;
    std::fill(skipped_.begin(), skipped_.end(), false);
    take_later();
    mine_.sequence = sequence_;
    if (const std::uint64_t fingerprint = call.fingerprint(); mine_.call.fingerprint != fingerprint)
      mine_.call = CollectiveCallRecord{call};
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_ && records_[peer].sequence < sequence_ && receives_[peer] == MPI_REQUEST_NULL)
        receive_record(peer);
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        check(MPI_Isend(&mine_, sizeof(mine_), MPI_BYTE, static_cast<int>(peer), record_tag, comm_, &sends_[peer]),
              "MPI_Isend");
    for (std::size_t peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      poll_until(
          spins_, timeout, [&] { return record_came(peer) || skipped_[peer]; }, [&] { look(peer); },
          [&] { throw_late_to_meet(timeout); });
    }
    poll_until(
        spins_, timeout, [&] { return sent_records(); }, [&] { look(std::nullopt); },
        [&] { throw_late_to_meet(timeout); });
    if (std::find(skipped_.begin(), skipped_.end(), true) != skipped_.end()) return false;
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_ && records_[peer].call.fingerprint != mine_.call.fingerprint) {
        all_know_of(sequence_);
        place_.disturb();
        throw mismatch_with(peer);
      }
    return true;
  }

  void receive_record(std::size_t peer) {
    check(MPI_Irecv(&records_[peer], sizeof(Record), MPI_BYTE, static_cast<int>(peer), record_tag, comm_,
                    &receives_[peer]),
          "MPI_Irecv");
  }
  /// Records of collectives that a failure interrupted are skipped. One of a later collective stays until this
  /// member gets there: the notice why the other one is missing in this one is on its way.
  [[nodiscard]] bool record_came(std::size_t peer) {
    for (;;) {
      if (receives_[peer] != MPI_REQUEST_NULL) {
        int done = 0;
        check(MPI_Test(&receives_[peer], &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return false;
      }
      if (records_[peer].sequence >= sequence_) return records_[peer].sequence == sequence_;
      receive_record(peer);
    }
  }
  [[nodiscard]] bool sent_records() {
    int done = 0;
    check(MPI_Testall(static_cast<int>(size_), sends_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done != 0;
  }

  /// The same for a member that leaves the collective: small messages leave soon, whatever their receivers do.
  [[nodiscard]] bool records_leave() {
    constexpr std::int64_t second = 1'000'000'000;
    bool late = false;
    poll_until(
        spins_, second, [&] { return sent_records() || late; }, [] {}, [&] { late = true; });
    return !late;
  }

  [[nodiscard]] Transfer begun(Transfer transfer, bool receives) {
    if (free_places_.empty()) {
      free_places_.push_back(under_way_.size());
      under_way_.push_back(MPI_REQUEST_NULL);
    }
    transfer.place = free_places_.back();
    free_places_.pop_back();
    under_way_[transfer.place] = receives ? transfer.request : MPI_REQUEST_NULL;
    return transfer;
  }

  /// Called about every millisecond while waiting for `peer`: throws if it has failed or is lost.
  void look(std::optional<std::size_t> peer) {
    SlowWait::note_innermost(
        [&] { return text("for ", peer ? name(*peer) : "the others", " in ", describe(mine_.call.call())); });
    departures_->look();
    take_notices();  // a failure of which a member told before it left
    for (std::size_t member = 0; member < size_; ++member)
      if (departures_->has_left(member, sequence_)) raise_left(member);
    if (options_.health == nullptr) return;
    if (const std::optional<LostPeer> lost =
            options_.health->find_lost(peer ? std::optional{worker(*peer)} : std::nullopt)) {
      // What it said before it ended is more precise. MPI_Iprobe looks before it progresses: a message shows the second
      // time.
      for (int again = 0; again < 3; ++again) take_notices();
      give_up(unavailable(*lost));
    }
  }

  void take_notices() {
    for (;;) {
      int here = 0;
      MPI_Status status;
      check(MPI_Iprobe(MPI_ANY_SOURCE, notice_tag, comm_, &here, &status), "MPI_Iprobe");
      if (here == 0) return;
      Notice notice;
      check(MPI_Recv(&notice, sizeof(notice), MPI_BYTE, status.MPI_SOURCE, notice_tag, comm_, MPI_STATUS_IGNORE),
            "MPI_Recv");
      const bool breaks = notice.failure.breaks_the_group();
      const auto peer = static_cast<std::size_t>(status.MPI_SOURCE);
      heard_[peer] = std::max(heard_[peer], notice.sequence);
      if (!breaks && (notice.sequence < sequence_ || notice.sequence == failed_)) {
        note_late({notice, peer});  // it is not the first failure that kept this member from a collective
        continue;
      }
      if (notice.sequence > sequence_ && !breaks) {
        later_.push_back({notice, peer});  // its sender has done its part of this collective
        continue;
      }
      if (meets_ && !breaks && skips({notice, peer})) continue;
      const bool interrupted = free_places_.size() != under_way_.size() || !records_leave();
      note({notice, peer});
      all_know_of(notice.sequence);
      try {
        said_last(notice, peer).raise(worker(peer), host(peer));
      } catch (...) {
        if (interrupted || breaks)
          break_with(std::current_exception());
        else
          forget_receives();
        throw;
      }
    }
  }
  /// All members see a failure in this collective.
  void all_know_of(std::uint64_t sequence) noexcept {
    sequence_ = failed_ = sequence;
    all_know_ = true;
    std::erase_if(later_, [&](const NoticeFrom& each) { return each.notice.sequence <= sequence; });
  }
  /// Whether this failure, instead of the call that this member waits for, concerns nobody else.
  [[nodiscard]] bool skips(const NoticeFrom& failed) {
    if (!place_.is_past(failed.notice.place)) return false;
    place_.note(failed.notice.place);
    skipped_[failed.peer] = true;
    last_skipped_ = failed;
    return true;
  }
  void note(const NoticeFrom& failed) {
    place_.note(failed.notice.place);
    if (!place_.is_past(failed.notice.place)) closed_by_ = failed;
  }
  /// Members that failed at the same collective in different runs are all heard.
  void note_late(const NoticeFrom& failed) {
    if (failed.notice.sequence <= succeeded_) return;
    note(failed);
    if (meets_ && place_.is_closed()) raise_closed();
  }
  [[noreturn]] void raise_closed() {
    all_know_ = true;
    try {
      closed_by_.notice.failure.raise(worker(closed_by_.peer), host(closed_by_.peer));
    } catch (...) {
      if (!meets_ || records_leave())
        forget_receives();
      else
        break_with(std::current_exception());
      throw;
    }
  }
  /// That a worker ended because of a failure says less than the failure.
  [[nodiscard]] const FailureNotice& said_last(const Notice& notice, std::size_t peer) const noexcept {
    const bool says_less = notice.failure.is_last() && !notice.failure.breaks_the_group();
    return says_less && last_skipped_ && last_skipped_->peer == peer ? last_skipped_->notice.failure : notice.failure;
  }
  /// A member does not come to this collective nor to any other one. Another failure that it told of says more.
  [[noreturn]] void raise_left(std::size_t peer) {
    try {
      if (last_skipped_ && last_skipped_->peer == peer) last_skipped_->notice.failure.raise(worker(peer), host(peer));
      throw dist::detail::worker_left(
          name(peer), described(rank_),
          sequence_ == 1 ? "it came to none" : text("its last was ", describe(last_.call()), ", step ", sequence_ - 1));
    } catch (...) {
      break_with(std::current_exception());
      throw;
    }
  }
  /// The failures that came early and keep their members from this collective.
  void take_later() {
    for (std::size_t i = 0; i < later_.size();) {
      if (later_[i].notice.sequence != sequence_)
        ++i;
      else if (skips(later_[i]))
        later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        raise_later();
    }
  }
  [[nodiscard]] bool is_abandoned(std::uint64_t sequence) const noexcept {
    return !later_.empty() && first_of_later()->notice.sequence == sequence;
  }
  [[nodiscard]] std::vector<NoticeFrom>::const_iterator first_of_later() const noexcept {
    return std::min_element(later_.begin(), later_.end(), [](const NoticeFrom& one, const NoticeFrom& other) {
      return one.notice.sequence < other.notice.sequence;
    });
  }
  [[noreturn]] void raise_later() {
    const NoticeFrom came = *first_of_later();
    for (const NoticeFrom& each : later_)
      if (each.notice.sequence == came.notice.sequence) note(each);
    all_know_of(came.notice.sequence);
    said_last(came.notice, came.peer).raise(worker(came.peer), host(came.peer));
  }
  void send_notices(const FailureNotice& failure) {
    std::erase_if(notices_, [](const std::unique_ptr<OutgoingNotice>& sent) {
      int done = 0;
      MPI_Testall(static_cast<int>(sent->requests.size()), sent->requests.data(), &done, MPI_STATUSES_IGNORE);
      return done != 0;
    });
    OutgoingNotice& out = *notices_.emplace_back(std::make_unique<OutgoingNotice>());
    out.notice = {sequence_, failure.is_last() ? CallPlace::behind_all : place_.position(), failure};
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        check(MPI_Isend(&out.notice, sizeof(Notice), MPI_BYTE, static_cast<int>(peer), notice_tag, comm_,
                        &out.requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend");
  }

  /// This member cannot go on: tells the peers and throws, now and at every later call.
  template <class E>
  [[noreturn]] void give_up(const E& error) {
    all_know_of(sequence_ + 1);
    break_with(std::make_exception_ptr(error));
    try {
      send_notices(error);
    } catch (const Error&) {
      // They notice at their own deadline.
    }
    throw error;
  }

  void break_with(std::exception_ptr why) {
    broken_ = std::move(why);
    forget_receives();
    for (MPI_Request& receive : under_way_)
      if (receive != MPI_REQUEST_NULL) cancel(receive);
    // Transfers that are still on their way use the memory of this object.
    static std::mutex one_at_a_time;
    static std::vector<std::shared_ptr<CommunicatorState>> kept_until_the_process_ends;
    const std::lock_guard lock{one_at_a_time};
    kept_until_the_process_ends.push_back(shared_from_this());
  }
  /// Records that arrive later are skipped.
  void forget_receives() {
    for (MPI_Request& request : receives_)
      if (request != MPI_REQUEST_NULL) cancel(request);
  }
  static void cancel(MPI_Request& request) {
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }

  template <std::size_t size>
  static void store(std::string_view what, std::array<char, size>& place) noexcept {
    std::memcpy(place.data(), what.data(), std::min(what.size(), size - 1));
  }
  [[nodiscard]] static double seconds(std::int64_t nanoseconds) noexcept {
    return static_cast<double>(nanoseconds) * 1e-9;
  }
  [[nodiscard]] std::string name(std::size_t rank) const {
    return text("worker ", worker(rank), " (host ", host(rank), ")");
  }
  [[nodiscard]] std::string described(std::size_t rank) const {
    const Record& record = rank == rank_ ? mine_ : records_[rank];
    return text(name(rank), " called ", describe(record.call.call()), " as step ", record.sequence,
                " of the collectives between these workers");
  }
  /// The last call of a member that is missing in this one: all took part in the one before.
  [[nodiscard]] std::string last_call() const {
    if (sequence_ == 1) return "they have come to none yet";
    return text("their last was ", describe(last_.call()), ", step ", sequence_ - 1);
  }
  [[nodiscard]] CollectiveMismatch mismatch_with(std::size_t peer) const {
    return dist::detail::different_calls("worker", mine_.call.call(), described(rank_), records_[peer].call.call(),
                                         described(peer));
  }
  [[noreturn]] void throw_late_to_meet(std::int64_t timeout) {
    std::string missing;
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_ && !record_came(peer)) missing += text(missing.empty() ? "" : ", ", name(peer));
    for (std::size_t peer = 0; peer < size_; ++peer)
      if (peer != rank_ && receives_[peer] == MPI_REQUEST_NULL && records_[peer].sequence == sequence_ &&
          records_[peer].call.fingerprint != mine_.call.fingerprint)
        give_up(mismatch_with(peer));  // more precise than the name of a missing member
    give_up(dist::detail::workers_missing(missing.empty() ? "some" : missing, described(rank_), timeout, last_call()));
  }

  CommunicatorOptions options_;
  std::int64_t timeout_;
  unsigned spins_ = spins_on_own_core;
  ThreadPermit permit_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<Departures> departures_;
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  std::vector<MemberIdentity> members_;
  std::uint64_t sequence_ = 0;
  std::uint64_t failed_ = 0;       // the last collective in which all members saw a failure
  std::uint64_t own_failure_ = 0;  // the last collective to which this member did not come
  bool all_know_ = false;          // of the failure that ended this attempt
  CallPlace place_;
  std::uint64_t structure_ = 0;
  bool meets_ = false;                // this member waits for the others' calls
  std::uint64_t succeeded_ = 0;       // the last collective to which all members came
  std::vector<std::uint64_t> heard_;  // the last collective to which each peer did not come, as it told
  std::vector<bool> skipped_;         // the peers that failed in an earlier run instead of coming to this collective
  std::optional<NoticeFrom> last_skipped_;
  NoticeFrom closed_by_{};  // the failure in the run that this member is in, or in a later one
  Record mine_;
  CollectiveCallRecord last_;  // what all members called before
  std::vector<Record> records_;
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Request> sends_;
  std::vector<MPI_Request> under_way_;  // the receives among the transfers
  std::vector<std::size_t> free_places_;
  std::vector<std::unique_ptr<OutgoingNotice>> notices_;
  std::vector<NoticeFrom> later_;  // about collectives that this member has not reached
  std::array<AlignedBuffer<std::byte>, 4> scratch_;
  std::exception_ptr broken_;
};

}  // namespace detail

}  // namespace dist::mpi
