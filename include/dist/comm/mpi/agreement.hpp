#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/health/longest_wait.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/departures.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>

namespace dist::mpi {

struct AgreementOptions {
  /// The longest that a worker waits for the others; 0 waits as long as it takes.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  PeerHealth* health = nullptr;  ///< asked while waiting; outlives the agreement
};

namespace detail {

/// The vote of one member on one question, and what it hears from the others.
struct Votes {
  enum class Vote : unsigned char { no, yes, failed };
  /// Only a vote that failed has a text, and is sent with it.
  struct Message {
    Vote vote = Vote::no;
    std::array<char, 1023> why{};
  };

  explicit Votes(std::size_t members)
      : heard(members), receives(members, MPI_REQUEST_NULL), sends(members, MPI_REQUEST_NULL) {}

  [[nodiscard]] bool are_settled() { return is_done(receives) && is_done(sends); }
  [[nodiscard]] static bool is_done(std::vector<MPI_Request>& requests) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done != 0;
  }

  Message said;
  std::vector<Message> heard;
  std::vector<MPI_Request> receives;
  std::vector<MPI_Request> sends;
};

/// What the passes of one member have in common: a communicator that carries only votes.
class AgreementGroup {
 public:
  AgreementGroup(const Communicator& workers, const AgreementOptions& options)
      : workers_(workers), health_(options.health), timeout_(dist::detail::longest_wait(options.timeout)) {
    permit_.require("an agreement of workers");
    MPI_Request request = MPI_REQUEST_NULL;
    auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    check(MPI_Comm_idup(workers.native(), made.get(), &request), "MPI_Comm_idup");
    try {
      wait({&request, 1}, "The making of an agreement", options.timeout, health_);
    } catch (...) {
      static_cast<void>(made.release());  // MPI may still write there
      throw;
    }
    comm_ = *made;
    departures_ = std::make_unique<Departures>(comm_, departure_tag);
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    // The first messages of two processes connect them, which takes both.
    auto votes = std::make_unique<Votes>(size());
    try {
      start(*votes, Votes::Vote::yes, connecting_tag);
      settle(*votes);
    } catch (...) {
      keep(std::move(votes));
      throw;
    }
  }
  AgreementGroup(const AgreementGroup&) = delete;
  AgreementGroup& operator=(const AgreementGroup&) = delete;
  ~AgreementGroup() {
    if (is_running() && std::uncaught_exceptions() == 0) {
      leave();
      if (!broken_) finish_left();
    }
    for (std::unique_ptr<Votes>& votes : left_) keep(std::move(votes));
  }

  [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }

  /// The members begin their passes in the same order, so that they give them the same tags.
  [[nodiscard]] int next_tag() noexcept {
    constexpr std::uint64_t tags = 16'000;
    return static_cast<int>(connecting_tag + 1 + passes_++ % tags);
  }

  void start(Votes& votes, Votes::Vote said, int tag) {
    permit_.require("an agreement of workers");
    votes.said.vote = said;
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != workers_.rank())
        check(MPI_Irecv(&votes.heard[peer], sizeof(Votes::Message), MPI_BYTE, static_cast<int>(peer), tag, comm_,
                        &votes.receives[peer]),
              "MPI_Irecv");
    send(votes, tag, 1);
  }

  /// Waits for the votes of all. Returns whether all say yes.
  bool settle(Votes& votes) {
    wait_until(votes, [&] { return votes.are_settled(); });
    bool all = votes.said.vote == Votes::Vote::yes;
    for (std::size_t peer = 0; peer < size(); ++peer) {
      if (peer == workers_.rank()) continue;
      require_success(votes, peer);
      all = all && votes.heard[peer].vote == Votes::Vote::yes;
    }
    return all;
  }
  /// Waits until one has said yes or all have said no.
  bool find_yes(Votes& votes) {
    if (votes.said.vote == Votes::Vote::yes) return true;
    bool found = false;
    wait_until(votes, [&] {
      bool all_came = true;
      for (std::size_t peer = 0; peer < size() && !found; ++peer) {
        if (peer == workers_.rank()) continue;
        const bool came = has_come(votes, peer);
        if (came) require_success(votes, peer);
        found = came && votes.heard[peer].vote == Votes::Vote::yes;
        all_came = all_came && came;
      }
      return found || all_came;
    });
    return found;
  }

  /// Takes over the messages that are on their way at the end of a pass.
  void leave(std::unique_ptr<Votes> votes) {
    left_.push_back(std::move(votes));
    finish_left_now();
  }
  /// Tells the members that wait for this one's next vote in a pass that there will be none, and why. A text that does
  /// not fit is cut.
  void fail(int tag, std::string_view why) {
    broken_ = true;
    Votes& votes = *left_.emplace_back(std::make_unique<Votes>(size()));
    votes.said.vote = Votes::Vote::failed;
    const std::size_t length = std::min(why.size(), votes.said.why.size() - 1);
    std::memcpy(votes.said.why.data(), why.data(), length);
    send(votes, tag, offsetof(Votes::Message, why) + length);
  }
  /// What the data of this member threw in its last pass, if that ended the pass.
  [[nodiscard]] const std::string& thrown_by_data() const noexcept { return thrown_by_data_; }
  void set_thrown_by_data(std::string what) noexcept { thrown_by_data_ = std::move(what); }

 private:
  static constexpr int connecting_tag = 16'500;  // no tag of a Communicator, and not above those that every MPI has
  static constexpr int departure_tag = 1;

  void send(Votes& votes, int tag, std::size_t bytes) {
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != workers_.rank())
        check(MPI_Isend(&votes.said, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(peer), tag, comm_,
                        &votes.sends[peer]),
              "MPI_Isend");
  }

  [[nodiscard]] static bool has_come(Votes& votes, std::size_t peer) {
    int done = 0;
    check(MPI_Test(&votes.receives[peer], &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  /// Messages may still come, and must find their place.
  static void keep(std::unique_ptr<Votes> votes) {
    static std::vector<std::unique_ptr<Votes>> kept_until_the_process_ends;
    kept_until_the_process_ends.push_back(std::move(votes));
  }

  template <class Done>
  void wait_until(Votes& votes, Done&& done) {
    try {
      poll_until(
          spins_on_shared_core, timeout_, done, [&] { look(votes); }, [&] { throw_late(votes); });
    } catch (...) {
      broken_ = true;
      throw;
    }
  }

  /// Called about every millisecond: throws if a member is lost, or has left instead of posting.
  void look(Votes& votes) {
    workers_.look_for_failures();
    look_for_departures(votes);
    for (std::size_t peer = 0; peer < size(); ++peer) {
      if (peer == workers_.rank()) continue;
      if (has_come(votes, peer))
        require_success(votes, peer);
      else if (health_ != nullptr)
        health_->look(workers_.worker(peer));
    }
  }

  void require_success(Votes& votes, std::size_t peer) {
    if (votes.heard[peer].vote != Votes::Vote::failed) return;
    broken_ = true;
    look_for_departures(votes);        // perhaps it failed because another one has left
    workers_.look_for_failures(true);  // what it told the group is more precise
    throw PeerError(workers_.worker(peer), workers_.host(peer), votes.heard[peer].why.data());
  }

  /// Throws if a member has left instead of posting.
  void look_for_departures(Votes& votes) {
    departures_->look();
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (departures_->has_left(peer) && !has_come(votes, peer))
        throw CollectiveMismatch("The workers do not make the same loops over distributed data",
                                 text(name(workers_.rank()), " asks the others whether there is a next step, but ",
                                      name(peer), " has ended its strategy"),
                                 "Let all workers make the same loops, and end together");
  }
  [[nodiscard]] std::string name(std::size_t peer) const {
    return text("worker ", workers_.worker(peer), " (host ", workers_.host(peer), ")");
  }

  [[noreturn]] void throw_late(Votes& votes) {
    std::string missing;
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != workers_.rank() && !has_come(votes, peer))
        missing +=
            text(missing.empty() ? "worker " : ", worker ", workers_.worker(peer), " on host ", workers_.host(peer));
    throw DeadlineExceeded("The workers did not agree in time on whether there is a next step",
                           text("no word of ", missing, " in ", static_cast<double>(timeout_) * 1e-9, " s"),
                           "Let all workers make the same loops over distributed data, or give a longer timeout");
  }

  void finish_left_now() {
    std::erase_if(left_, [](const std::unique_ptr<Votes>& votes) { return votes->are_settled(); });
  }
  void leave() noexcept {
    try {
      Departures::leave(std::move(departures_));
    } catch (...) {
      // The others find out by their deadline.
    }
  }
  /// The votes of other members at the end of a pass arrive soon, if they are well.
  void finish_left() noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    bool late = false;
    try {
      poll_until(
          spins_on_shared_core, second, [&] { return finish_left_now(), left_.empty() || late; }, [] {},
          [&] { late = true; });
    } catch (const Error&) {
      // Those that are still to come are kept.
    }
  }

  Communicator workers_;
  PeerHealth* health_;
  std::int64_t timeout_;
  ThreadPermit permit_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<Departures> departures_;
  std::uint64_t passes_ = 0;
  std::vector<std::unique_ptr<Votes>> left_;
  std::string thrown_by_data_;
  bool broken_ = false;
};

}  // namespace detail

/// Lets the workers of a distributed dataset agree on its end, through MPI: a data::Agreement.
///
/// Every member sends every other one a byte, so that an answer needs only that the others have asked: a
/// member that has voted may compute, or wait in shared memory for one that waits for the answer here. (Members of a
/// reduction in a tree, such as MPI_Iallreduce, would have to come back to MPI to pass on what they heard.)
///
/// Waits end by DeadlineExceeded, which names the missing members; by Unavailable, where PeerHealth knows that a member
/// is gone; by CollectiveMismatch, where a member's last copy went; by PeerError, where an exception ended a member's
/// pass. A member that failed in a step and told the group
/// may go on with its data, and is waited for. The thread that waits must be one that may call MPI.
class Agreement {
 public:
  class Pass {
   public:
    explicit Pass(std::shared_ptr<detail::AgreementGroup> group)
        : group_(std::move(group)),
          votes_(std::make_unique<detail::Votes>(group_->size())),
          tag_(group_->next_tag()),
          exceptions_(std::uncaught_exceptions()) {}
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept {
      std::swap(group_, other.group_);
      std::swap(votes_, other.votes_);
      std::swap(tag_, other.tag_);
      std::swap(exceptions_, other.exceptions_);
      std::swap(thrown_by_data_, other.thrown_by_data_);
      return *this;
    }
    ~Pass() {
      if (votes_ == nullptr || !is_running()) return;
      try {
        group_->leave(std::move(votes_));
        if (std::uncaught_exceptions() <= exceptions_) return;
        // What the body of the loop threw cannot be read here.
        group_->fail(tag_, thrown_by_data_.empty()
                               ? "an exception in the loop over its data; see what that worker printed"
                               : text("an exception in its data: ", thrown_by_data_));
        group_->set_thrown_by_data(std::move(thrown_by_data_));
      } catch (...) {
        // The others find out by their deadline.
      }
    }

    void start(bool holds) {
      thrown_by_data_.clear();
      wait();
      group_->start(*votes_, holds ? Vote::yes : Vote::no, tag_);
    }
    /// This member's data threw `what`: the others hear that if the exception ends the pass.
    void note_thrown_by_data(std::string_view what) { thrown_by_data_ = what; }
    void wait() { static_cast<void>(group_->settle(*votes_)); }
    [[nodiscard]] bool is_done() const { return votes_->are_settled(); }
    [[nodiscard]] bool any() { return group_->find_yes(*votes_); }
    [[nodiscard]] bool all() { return group_->settle(*votes_); }

   private:
    using Vote = detail::Votes::Vote;

    std::shared_ptr<detail::AgreementGroup> group_;
    std::unique_ptr<detail::Votes> votes_;
    int tag_;
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
  void abandon(std::string_view why) const noexcept {
    try {
      group_->fail(group_->next_tag(), why);
    } catch (...) {
      // They find out by their deadline.
    }
  }

 private:
  std::shared_ptr<detail::AgreementGroup> group_;
};

}  // namespace dist::mpi
