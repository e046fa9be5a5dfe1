#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

/// Options of an Agreement.
struct AgreementOptions {
  /// Maximum wait for the other workers; 0: without limit.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  PeerHealth* health = nullptr;  ///< checked while waiting; must outlive the agreement
};

namespace detail {

/// The shared state of a member's passes, with its own communicator.
class AgreementGroup {
 public:
  AgreementGroup(const Communicator& workers, const AgreementOptions& options);
  AgreementGroup(const AgreementGroup&) = delete;
  AgreementGroup& operator=(const AgreementGroup&) = delete;
  ~AgreementGroup();

  [[nodiscard]] std::uint64_t begin() { return polls_.begin(); }
  void end(std::uint64_t pass) noexcept { polls_.end(pass); }

  void ask(std::uint64_t pass, bool holds);
  /// Waits until all messages about the last question of a pass have arrived.
  void settle(std::uint64_t pass);
  [[nodiscard]] bool is_settled(std::uint64_t pass);
  [[nodiscard]] bool answer(std::uint64_t pass);
  [[nodiscard]] bool knows_answer(std::uint64_t pass) const noexcept { return polls_.knows_answer(pass); }
  /// Reports this member's failure in a pass to the members that wait for it.
  void fail(std::uint64_t pass, std::string_view why);
  /// The error of this member's data, if it ended the last pass.
  [[nodiscard]] const std::string& thrown_by_data() const noexcept { return thrown_by_data_; }
  void set_thrown_by_data(std::string what) noexcept { thrown_by_data_ = std::move(what); }

 private:
  using Polls = dist::detail::Polls;
  using Message = Polls::Message;

  static constexpr int departure_tag = 1;
  static constexpr int message_tag = 2;
  /// Nanoseconds by which members that directly wait for a late member give up earlier than others, because they know
  /// its name.
  static constexpr std::int64_t direct_word = 200'000'000;

  [[nodiscard]] static std::span<const std::byte> bytes_of(const Message& message) noexcept;
  void send(std::size_t partner, const Message& message);
  void send_to_all(const Message& message);

  void take(std::uint64_t pass);
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

  /// Called about every millisecond: throws if a member is lost, or has left without an answer.
  void look(std::uint64_t pass);
  /// Calls `visit(peer, is_certain)` for each member that may not have reached the last question of a pass.
  template <class Visit>
  void for_each_missing(std::uint64_t pass, Visit&& visit) const {
    const std::size_t size = workers_.size();
    polls_.for_each_awaited(pass, [&](std::size_t peer, std::size_t speaks_for) {
      for (std::size_t below = 0; below < speaks_for; ++below) visit((peer + size - below) % size, speaks_for == 1);
    });
  }
  /// Reports to all members that a member does not reach the last question.
  void stop(std::uint64_t pass, Polls::Kind kind, std::size_t who) { send_to_all(polls_.stop(pass, kind, who)); }
  /// Handles a timeout. Returns if other members may know better which one is late, unless `knows_no_better`.
  void fail_late(std::uint64_t pass, bool knows_no_better);

  [[nodiscard]] std::string place(std::size_t peer) const;
  [[nodiscard]] std::string name(std::size_t peer) const;
  [[noreturn]] void throw_stopped(const Message& stop);
  [[noreturn]] void throw_late(std::string_view missing) const;

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

/// Lets the workers of a distributed dataset determine whether a condition holds on any of them: a data::Agreement by
/// MPI and `detail::Polls`, with at most 2 log2(P) small messages per member and question.
///
/// Waits end with DeadlineExceeded, which names the missing members; Unavailable if PeerHealth reports a lost member;
/// CollectiveMismatch if a member has destroyed its last copy; PeerError if an exception ended a member's pass. A
/// member that failed in a step and reported it may continue with its data, so the others wait for it. The waiting
/// thread must be allowed to call MPI.
class Agreement {
 public:
  /// One pass over the data.
  class Pass {
   public:
    /// Begins a pass of the group.
    explicit Pass(std::shared_ptr<detail::AgreementGroup> group)
        : group_(std::move(group)), number_(group_->begin()), exceptions_(std::uncaught_exceptions()) {}
    /// Takes over the pass; `other` is without one.
    Pass(Pass&&) noexcept = default;
    /// Exchanges the passes, so that `other` ends this one.
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
          // The exception of the loop body is not accessible here.
          group_->fail(number_, thrown_by_data_.empty()
                                    ? "an exception in the loop over its data; see what that worker printed"
                                    : concat("an exception in its data: ", thrown_by_data_));
          group_->set_thrown_by_data(std::move(thrown_by_data_));
        } else if (!group_->knows_answer(number_)) {
          group_->fail(number_, "it does not wait for the answer, which it must forward");
        }
      } catch (...) {
        // The others reach their deadline.
      }
      group_->end(number_);
    }

    void start(bool holds) {
      thrown_by_data_.clear();
      wait();
      group_->ask(number_, holds);
    }
    /// Stores the error of this member's data, to be reported if it ends the pass.
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

  /// A collective call of all members of `workers`. Throws like the constructor of Communicator.
  explicit Agreement(const Communicator& workers, const AgreementOptions& options = {})
      : group_(std::make_shared<detail::AgreementGroup>(workers, options)) {}

  [[nodiscard]] Pass begin() const;
  /// The error of this member's data if it ended the last pass; else empty.
  [[nodiscard]] const std::string& thrown_by_data() const noexcept { return group_->thrown_by_data(); }
  /// Reports to members that begin the next pass that this one fails.
  void cancel(std::string_view why) const noexcept;

 private:
  std::shared_ptr<detail::AgreementGroup> group_;
};

}  // namespace dist::mpi

#ifndef DIST_COMPILED
#include <dist/comm/mpi/agreement.ipp>
#endif
