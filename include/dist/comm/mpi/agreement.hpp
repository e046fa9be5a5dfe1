#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/messages/polls.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/shutdown_notice.hpp>
#include <dist/comm/mpi/small_messages.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::mpi {

struct AgreementOptions {
  /// The longest that a worker waits for the others; 0 waits as long as it takes.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  PeerHealth* health = nullptr;  ///< asked while waiting; outlives the agreement
};

namespace detail {

/// What the passes of one member have in common: a communicator that carries only their messages.
class AgreementGroup {
 public:
  AgreementGroup(const Communicator& workers, const AgreementOptions& options)
      : workers_(workers),
        health_(options.health),
        timeout_(dist::detail::longest_wait(options.timeout)),
        polls_(workers.rank(), workers.size()) {
    permit_.require("an agreement of workers");
    MPI_Request request = MPI_REQUEST_NULL;
    auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    DIST_MPI_CALL(MPI_Comm_idup(workers.native(), made.get(), &request));
    try {
      wait({&request, 1}, "The making of an agreement", options.timeout, health_);
    } catch (...) {
      static_cast<void>(made.release());  // MPI may still write there
      throw;
    }
    comm_ = *made;
    departures_ = std::make_unique<ShutdownNotice>(comm_, departure_tag);
    DIST_MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    // Nobody goes on before all have the communicator, because that may take all.
    const std::uint64_t first = begin();
    ask(first, false);
    settle(first);
    end(first);
  }
  AgreementGroup(const AgreementGroup&) = delete;
  AgreementGroup& operator=(const AgreementGroup&) = delete;
  ~AgreementGroup() {
    if (!is_running()) return;
    try {
      if (std::uncaught_exceptions() == 0)
        ShutdownNotice::leave(std::move(departures_));
      else
        departures_.release()->leave_at_finalize();
    } catch (...) {
      // The others find out by their deadline.
    }
  }

  [[nodiscard]] std::uint64_t begin() { return polls_.begin(); }
  void end(std::uint64_t pass) noexcept { polls_.end(pass); }

  void ask(std::uint64_t pass, bool holds) {
    permit_.require("an agreement of workers");
    polls_.ask(pass, holds, [this](std::size_t partner, const Message& message) { send(partner, message); });
  }
  /// Waits until the messages about the last question of a pass have come.
  void settle(std::uint64_t pass) {
    wait_until(pass, [&] { return polls_.is_settled(pass); });
  }
  [[nodiscard]] bool is_settled(std::uint64_t pass) {
    take(pass);
    return polls_.is_settled(pass);
  }
  /// Waits for the answer to the last question of a pass.
  [[nodiscard]] bool answer(std::uint64_t pass) {
    wait_until(pass, [&] { return polls_.knows_answer(pass); });
    return polls_.answer(pass);
  }
  [[nodiscard]] bool knows_answer(std::uint64_t pass) const noexcept { return polls_.knows_answer(pass); }
  /// Tells the members that wait for this one's next word in a pass that there will be none, and why.
  void fail(std::uint64_t pass, std::string_view why) {
    if (const std::optional<Message> message = polls_.fail(pass, why)) send_to_all(*message);
  }
  /// What the data of this member threw in its last pass, if that ended the pass.
  [[nodiscard]] const std::string& thrown_by_data() const noexcept { return thrown_by_data_; }
  void set_thrown_by_data(std::string what) noexcept { thrown_by_data_ = std::move(what); }

 private:
  using Polls = dist::detail::Polls;
  using Message = Polls::Message;

  static constexpr int departure_tag = 1;
  static constexpr int message_tag = 2;
  /// Members that hear from a late one themselves give up before those that hear of it through them, and name it.
  static constexpr std::int64_t direct_word = 200'000'000;

  [[nodiscard]] static std::span<const std::byte> bytes_of(const Message& message) noexcept {
    return {reinterpret_cast<const std::byte*>(&message), message.bytes()};
  }
  void send(std::size_t partner, const Message& message) {
    outbox_.send(comm_, message_tag, bytes_of(message), {polls_.schedule().to(partner)});
  }
  void send_to_all(const Message& message) {
    std::vector<std::size_t> peers;
    for (std::size_t peer = 0; peer < workers_.size(); ++peer)
      if (peer != workers_.rank()) peers.push_back(peer);
    outbox_.send(comm_, message_tag, bytes_of(message), peers);
  }

  void take(std::uint64_t pass) {
    take_messages<Message>(comm_, message_tag, [&](std::size_t, const Message& message) { polls_.hear(message); });
    polls_.advance(pass, [this](std::size_t partner, const Message& message) { send(partner, message); });
  }
  template <class Done>
  void wait_until(std::uint64_t pass, Done&& done) {
    if (done()) return;
    std::int64_t late_since = 0;
    const auto has_ended = [&] {
      take(pass);
      if (done()) return true;
      if (const Message* const stop = polls_.find_stop(pass)) throw_stopped(*stop);
      return false;
    };
    const auto late = [&] {
      const std::int64_t now = dist::detail::monotonic_nanoseconds();
      if (late_since == 0) late_since = now;
      fail_late(pass, now - late_since > direct_word);
    };
    poll_until(
        spins_on_shared_core, timeout_, has_ended, [&] { look(pass); }, late);
  }

  /// Called about every millisecond: throws if a member is lost, or has left instead of answering.
  void look(std::uint64_t pass) {
    workers_.look_for_failures();
    departures_->look();
    take(pass);  // what a member said before it left
    std::optional<std::size_t> left;
    polls_.for_each_awaited(pass, [&](std::size_t peer, std::size_t) {
      if (departures_->has_left(peer)) left = peer;
    });
    if (left && polls_.find_stop(pass) == nullptr) stop(pass, Polls::Kind::left, *left);
    if (const Message* const stop = polls_.find_stop(pass)) throw_stopped(*stop);
    if (health_ == nullptr) return;
    for_each_missing(pass, [&](std::size_t peer, bool) { health_->look(workers_.worker(peer)); });
  }
  /// Calls `visit(peer, is_certain)` for each one that may not have come to the last question of a pass.
  template <class Visit>
  void for_each_missing(std::uint64_t pass, Visit&& visit) const {
    const std::size_t size = workers_.size();
    polls_.for_each_awaited(pass, [&](std::size_t peer, std::size_t speaks_for) {
      for (std::size_t below = 0; below < speaks_for; ++below) visit((peer + size - below) % size, speaks_for == 1);
    });
  }
  /// This member has seen that `who` does not come.
  void stop(std::uint64_t pass, Polls::Kind kind, std::size_t who) { send_to_all(polls_.stop(pass, kind, who)); }
  /// The time is up. Returns where this member does not know who is late, and others may, unless it `knows_no_better`.
  void fail_late(std::uint64_t pass, bool knows_no_better) {
    constexpr std::size_t most_names = 8;
    std::string names;
    std::size_t count = 0;
    std::optional<std::size_t> late;
    for_each_missing(pass, [&](std::size_t peer, bool is_certain) {
      if (is_certain) late = peer;
      if (++count <= most_names) names += concat(names.empty() ? "" : ", ", place(peer));
    });
    if (late) {
      stop(pass, Polls::Kind::late, *late);
      throw_late(place(*late));
    }
    if (count > most_names) names += concat(" and ", count - most_names, " others");
    if (knows_no_better) throw_late(concat("at least one of ", names));
  }

  [[nodiscard]] std::string place(std::size_t peer) const {
    return concat("worker ", workers_.worker(peer), " on host ", workers_.host(peer));
  }
  [[nodiscard]] std::string name(std::size_t peer) const {
    return concat("worker ", workers_.worker(peer), " (host ", workers_.host(peer), ")");
  }
  [[noreturn]] void throw_stopped(const Message& stop) {
    if (stop.kind == Polls::Kind::late) throw_late(place(stop.who));
    if (stop.kind == Polls::Kind::left)
      throw CollectiveMismatch("The workers do not make the same loops over distributed data",
                               concat(name(workers_.rank()), " asks the others whether there is a next step, but ",
                                      name(stop.who), " has ended its strategy"),
                               "Let all workers make the same loops, and end together");
    workers_.look_for_failures(true);  // what it told the group is more precise
    throw PeerError(workers_.worker(stop.who), workers_.host(stop.who), stop.why.data());
  }
  [[noreturn]] void throw_late(std::string_view missing) const {
    throw DeadlineExceeded("The workers did not agree in time on whether there is a next step",
                           concat("no word of ", missing, " in ", std::chrono::nanoseconds{timeout_}),
                           "Let all workers make the same loops over distributed data, or give a longer timeout");
  }

  Communicator workers_;
  PeerHealth* health_;
  std::int64_t timeout_;
  Polls polls_;
  ThreadPermit permit_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<ShutdownNotice> departures_;
  Outbox outbox_;
  std::string thrown_by_data_;
};

}  // namespace detail

/// Lets the workers of a distributed dataset find out whether something holds on any of them, through MPI: a
/// data::Agreement over `detail::Polls`, with at most 2 log2(P) messages of some bytes a member for each question.
///
/// Waits end by DeadlineExceeded, which names the missing members; by Unavailable, where PeerHealth knows that a member
/// is gone; by CollectiveMismatch, where a member's last copy went; by PeerError, where an exception ended a member's
/// pass. A member that failed in a step and told the group may go on with its data, and is waited for. The thread that
/// waits must be one that may call MPI.
class Agreement {
 public:
  class Pass {
   public:
    explicit Pass(std::shared_ptr<detail::AgreementGroup> group)
        : group_(std::move(group)), number_(group_->begin()), exceptions_(std::uncaught_exceptions()) {}
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept {
      std::swap(group_, other.group_);
      std::swap(number_, other.number_);
      std::swap(exceptions_, other.exceptions_);
      std::swap(thrown_by_data_, other.thrown_by_data_);
      return *this;
    }
    ~Pass() {
      if (group_ == nullptr || !is_running()) return;
      try {
        if (std::uncaught_exceptions() > exceptions_) {
          // What the body of the loop threw cannot be read here.
          group_->fail(number_, thrown_by_data_.empty()
                                    ? "an exception in the loop over its data; see what that worker printed"
                                    : concat("an exception in its data: ", thrown_by_data_));
          group_->set_thrown_by_data(std::move(thrown_by_data_));
        } else if (!group_->knows_answer(number_)) {
          group_->fail(number_, "it does not wait for the answer, which it would have to pass on");
        }
      } catch (...) {
        // The others find out by their deadline.
      }
      group_->end(number_);
    }

    void start(bool holds) {
      thrown_by_data_.clear();
      wait();
      group_->ask(number_, holds);
    }
    /// This member's data threw `what`: the others hear that if the exception ends the pass.
    void note_thrown_by_data(std::string_view what) { thrown_by_data_ = what; }
    void wait() { group_->settle(number_); }
    [[nodiscard]] bool is_done() const { return group_->is_settled(number_); }
    [[nodiscard]] bool any() { return group_->answer(number_); }

   private:
    std::shared_ptr<detail::AgreementGroup> group_;
    std::uint64_t number_;
    int exceptions_;
    std::string thrown_by_data_;
  };

  /// A collective call of all members of `workers`. Throws as Communicator does.
  explicit Agreement(const Communicator& workers, const AgreementOptions& options = {})
      : group_(std::make_shared<detail::AgreementGroup>(workers, options)) {}

  [[nodiscard]] Pass begin() const {
    group_->set_thrown_by_data({});
    return Pass{group_};
  }
  /// What this member's data threw, where that ended the last pass; else empty.
  [[nodiscard]] const std::string& thrown_by_data() const noexcept { return group_->thrown_by_data(); }
  /// Tells the members that begin the next pass that this one will not, and why.
  void cancel(std::string_view why) const noexcept {
    try {
      const std::uint64_t pass = group_->begin();
      group_->fail(pass, why);
      group_->end(pass);
    } catch (...) {
      // They find out by their deadline.
    }
  }

 private:
  std::shared_ptr<detail::AgreementGroup> group_;
};

}  // namespace dist::mpi
