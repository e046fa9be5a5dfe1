// Workers of a strategy on a simulated network: a model of dist's concepts Network and WorkersNetwork. Each is a
// separate node, and runs in a virtual rank with its own thread (RunOn::threads).
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/comm/call_sequence.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/messages/call_agreement.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/polls.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/notice_board.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/error.hpp>
#include <dist/data/agreement.hpp>
#include <dist/strategy/workers.ipp>  // templates that the compiled parts instantiate only for MPI

#include <support/simulated_network.hpp>

namespace support {

/// Only one thread of the virtual workers runs at a time. On one processor, taking turns is ten times faster than on
/// two.
inline const bool on_one_processor = [] {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}();

/// A worker's membership: calls are agreed on by the product's protocol, whose messages also take virtual time.
class SimulatedMembership {
 public:
  using Transfer = SimulatedNetwork::Communicator::Transfer;

  /// All virtual ranks, which create their memberships in the same order.
  explicit SimulatedMembership(const SimulatedNetwork::Communicator& all) : SimulatedMembership(all, ranks(all), 0) {}

  [[nodiscard]] std::size_t rank() const noexcept { return state_->rank; }
  [[nodiscard]] std::size_t size() const noexcept { return state_->members.size(); }
  [[nodiscard]] std::size_t worker(std::size_t rank) const noexcept { return state_->members[rank]; }
  [[nodiscard]] std::string_view host(std::size_t rank) const noexcept { return state_->hosts[rank]; }
  [[nodiscard]] double seconds() const { return state_->comm.seconds(); }

  /// This rank's posted messages in the group, for communication other than collectives.
  [[nodiscard]] const SimulatedNetwork::Communicator& messages() const noexcept { return state_->comm; }

  /// Timeouts do not matter in virtual time: the network ends a run in a deadlock.
  [[nodiscard]] SimulatedMembership with_timeout(std::chrono::nanoseconds) const { return *this; }
  [[nodiscard]] SimulatedMembership with_checks(dist::CollectiveChecks) const { return *this; }
  static void watch_processes(dist::PeerHealth&) noexcept {}
  [[nodiscard]] static bool any_thread_may_communicate() noexcept { return false; }
  [[nodiscard]] static dist::SelfCommunicator local() noexcept { return {}; }

  void barrier() const { announce({.operation = "barrier"}); }
  void announce(dist::CollectiveCall call) const {
    if (size() == 1) return;
    board().place().require_shared(call.operation);
    call.structure = state_->structure;
    CallAgreement& meeting = state_->meeting;
    meeting.begin(call);
    try {
      for (advance(); meeting.is_waiting(); advance()) state_->comm.await_posted();
      if (meeting.state() == CallAgreement::State::failed) raise(meeting.failure());
      if (meeting.state() == CallAgreement::State::different) throw mismatch_with(meeting.different_call());
    } catch (...) {
      meeting.end();
      throw;
    }
    meeting.end();
  }

  void begin_run(std::uint64_t kind) const noexcept { board().place().begin_run(kind); }
  void begin_alone() const noexcept { board().place().begin_alone(); }
  void end_run() const noexcept { board().place().end_run(); }
  void begin_call() const noexcept { board().place().begin_call(); }
  void set_structure(std::uint64_t structure) const noexcept { state_->structure = structure; }

  void begin_attempt() const noexcept { board().begin_attempt(); }
  void cancel(const dist::FailureNotice& failure) const noexcept {
    if (size() == 1 || board().all_know() || board().place().is_alone()) return;
    const dist::detail::Notice notice = state_->meeting.cancel(failure);
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != rank()) post(peer, of_failure, notice, sizeof(notice));
    tell_failures();
  }
  void cancel(const std::exception_ptr&) const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }

  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) const {
    return state_->comm.start_send(bytes, worker(to));
  }
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) const {
    return state_->comm.start_receive(bytes, worker(from));
  }
  void wait(Transfer& transfer) const { state_->comm.wait(transfer); }
  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) const {
    return state_->comm.scratch(which, bytes);
  }

  [[nodiscard]] std::optional<SimulatedMembership> split(std::optional<std::size_t> part,
                                                         const dist::NetworkOptions& = {}) const {
    constexpr std::size_t none = ~std::size_t{0};
    return split_by({part.value_or(none), 0}, !part);
  }
  [[nodiscard]] SimulatedMembership duplicate(const dist::NetworkOptions& = {}) const {
    return *split_by({0, 0}, false);
  }
  struct Place {
    std::size_t color;
    std::size_t key;
  };
  /// Returns the members with the same colour, ordered by key. A collective call.
  [[nodiscard]] std::optional<SimulatedMembership> split_by(const Place& mine, bool stays_out) const {
    std::vector<Place> places(size());
    dist::HalvingDoublingAllReduce::On<SimulatedMembership>{*this}.all_gather_values("split", mine, std::span{places});
    const std::uint64_t group = state_->comm.group() * 1009 + ++state_->parts * 31 + mine.color % 29;
    if (stays_out) return std::nullopt;
    std::vector<std::size_t> part;
    for (std::size_t rank = 0; rank < size(); ++rank)
      if (places[rank].color == mine.color) part.push_back(rank);
    std::stable_sort(part.begin(), part.end(),
                     [&](std::size_t one, std::size_t other) { return places[one].key < places[other].key; });
    for (std::size_t& member : part) member = worker(member);
    return SimulatedMembership{state_->comm.in_group(group), std::move(part)};
  }

 private:
  using CallAgreement = dist::detail::CallAgreement;
  enum Kind : unsigned char { of_call, of_failure };

  struct State {
    State(const SimulatedNetwork::Communicator& given, std::vector<std::size_t> all, std::size_t mine)
        : comm(given), members(std::move(all)), rank(mine), meeting(mine, members.size()), calls(members.size()) {
      for (const std::size_t member : members) hosts.push_back(dist::concat("node ", member));
      calls.resize(meeting.schedule().partners());
    }

    SimulatedNetwork::Communicator comm;
    std::vector<std::size_t> members;
    std::vector<std::string> hosts;
    std::size_t rank;
    CallAgreement meeting;
    std::vector<std::deque<CallAgreement::Message>> calls;  // by partner, received early
    std::uint64_t structure = 0;
    std::uint64_t parts = 0;
  };

  SimulatedMembership(const SimulatedNetwork::Communicator& comm, std::vector<std::size_t> members)
      : state_(std::make_shared<State>(
            comm, members,
            static_cast<std::size_t>(std::find(members.begin(), members.end(), comm.rank()) - members.begin()))) {}
  SimulatedMembership(const SimulatedNetwork::Communicator& all, std::vector<std::size_t> members, int)
      : SimulatedMembership(all.in_group(all.open_group()), std::move(members)) {}
  [[nodiscard]] static std::vector<std::size_t> ranks(const SimulatedNetwork::Communicator& all) {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) ranks.push_back(rank);
    return ranks;
  }
  [[nodiscard]] dist::detail::NoticeBoard& board() const noexcept { return state_->meeting.board(); }

  template <class Content>
  void post(std::size_t to, Kind kind, const Content& content, std::size_t bytes, std::size_t partner = 0) const {
    std::vector<std::byte> letter(2 + bytes);
    letter[0] = static_cast<std::byte>(kind);
    letter[1] = static_cast<std::byte>(partner);
    std::memcpy(letter.data() + 2, &content, bytes);
    state_->comm.post(letter, worker(to));
  }
  void send_call(std::size_t partner, const CallAgreement::Message& message) const {
    post(state_->meeting.schedule().to(partner), of_call, message, message.bytes(), partner);
  }
  void tell_failures() const {
    state_->meeting.tell_failures(
        [&](std::size_t partner, const CallAgreement::Message& message) { send_call(partner, message); });
  }
  /// Advances the meeting as far as arrived messages allow.
  void advance() const {
    CallAgreement& meeting = state_->meeting;
    std::optional<dist::detail::NoticeFrom> thrown;
    while (!thrown && state_->comm.take([&](std::size_t from, std::span<const std::byte> letter) {
      if (static_cast<Kind>(letter[0]) == of_call) {
        std::memcpy(static_cast<void*>(&state_->calls[static_cast<std::size_t>(letter[1])].emplace_back()),
                    letter.data() + 2, letter.size() - 2);
        return;
      }
      dist::detail::NoticeFrom notice{};
      std::memcpy(static_cast<void*>(&notice.notice), letter.data() + 2, sizeof(notice.notice));
      const std::vector<std::size_t>& members = state_->members;
      notice.peer = static_cast<std::size_t>(std::find(members.begin(), members.end(), from) - members.begin());
      thrown = board().hear(notice);
    })) {
    }
    if (thrown) raise(*thrown);
    for (std::size_t partner = 0; partner < state_->calls.size(); ++partner)
      for (std::deque<CallAgreement::Message>& calls = state_->calls[partner]; !calls.empty() && meeting.wants(partner);
           calls.pop_front())
        meeting.receive(partner, calls.front());
    meeting.advance([&](std::size_t partner, const CallAgreement::Message& message) { send_call(partner, message); });
  }
  [[noreturn]] void raise(const dist::detail::NoticeFrom& failure) const {
    tell_failures();
    failure.notice.failure.raise(worker(failure.peer), host(failure.peer));
  }
  [[nodiscard]] dist::CollectiveMismatch mismatch_with(const dist::detail::BroughtCall& other) const {
    const auto described = [&](std::size_t rank, const dist::CollectiveCallRecord& call) {
      return dist::concat("worker ", worker(rank), " (host ", host(rank), ") called ", describe(call.call()));
    };
    const dist::CollectiveCallRecord& mine = state_->meeting.mine();
    return dist::detail::different_calls("worker", mine.call(), described(rank(), mine), other.call.call(),
                                         described(static_cast<std::size_t>(other.rank), other.call));
  }

  std::shared_ptr<State> state_;
};

static_assert(dist::Network<SimulatedMembership>);

/// Agreement of simulated workers on the end of their data, by the product's protocol.
class SimulatedAgreement {
  struct Group {
    explicit Group(SimulatedMembership members) : all(std::move(members)), polls(all.rank(), all.size()) {}

    void send(std::size_t to, const dist::detail::Polls::Message& message) {
      all.messages().post(std::as_bytes(std::span{&message, 1}).first(message.bytes()), all.worker(to));
    }
    /// Waits until `done()`. Throws the error of a failed member.
    template <class Done>
    void wait_until(std::uint64_t pass, Done&& done) {
      while (true) {
        while (all.messages().take([&](std::size_t, std::span<const std::byte> letter) {
          dist::detail::Polls::Message message;
          std::memcpy(static_cast<void*>(&message), letter.data(), letter.size());
          polls.hear(message);
        })) {
        }
        polls.advance(pass, sender());
        if (done()) return;
        if (const auto* const stop = polls.find_stop(pass))
          throw dist::PeerError(all.worker(stop->who), all.host(stop->who), stop->why.data());
        all.messages().await_posted();
      }
    }
    struct Sender {
      Group* group;
      void operator()(std::size_t partner, const dist::detail::Polls::Message& message) const {
        group->send(group->polls.schedule().to(partner), message);
      }
    };
    [[nodiscard]] Sender sender() { return {this}; }

    SimulatedMembership all;
    dist::detail::Polls polls;
  };

 public:
  SimulatedAgreement(const SimulatedMembership& all, const dist::NetworkOptions&)
      : group_(std::make_shared<Group>(all.duplicate())) {}

  class Pass {
   public:
    explicit Pass(std::shared_ptr<Group> group) : group_(std::move(group)), number_(group_->polls.begin()) {}
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept {
      std::swap(group_, other.group_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Pass() {
      if (group_ != nullptr) group_->polls.end(number_);
    }

    void start(bool holds) {
      wait();
      group_->polls.ask(number_, holds, group_->sender());
    }
    void wait() {
      group_->wait_until(number_, [&] { return group_->polls.is_settled(number_); });
    }
    [[nodiscard]] bool is_done() const noexcept { return group_->polls.is_settled(number_); }
    [[nodiscard]] bool any() {
      group_->wait_until(number_, [&] { return group_->polls.knows_answer(number_); });
      return group_->polls.answer(number_);
    }
    static void note_thrown_by_data(std::string_view) noexcept {}

   private:
    std::shared_ptr<Group> group_;
    std::uint64_t number_;
  };

  [[nodiscard]] Pass begin() const { return Pass{group_}; }
  void cancel(std::string_view why) const noexcept {
    const std::uint64_t pass = group_->polls.begin();
    if (const auto message = group_->polls.fail(pass, why))
      for (std::size_t peer = 0; peer < group_->all.size(); ++peer)
        if (peer != group_->all.rank()) group_->send(peer, *message);
    group_->polls.end(pass);
  }
  [[nodiscard]] static std::string thrown_by_data() { return ""; }

 private:
  std::shared_ptr<Group> group_;
};

class SimulatedWorld {
 public:
  class JobScope {
   public:
    [[nodiscard]] bool failing() const noexcept { return std::uncaught_exceptions() > exceptions_; }
    static void fail() noexcept {}

   private:
    int exceptions_ = std::uncaught_exceptions();
  };
  class Part;

  explicit SimulatedWorld(const SimulatedNetwork::Communicator& all) : all_(all) {}
  explicit SimulatedWorld(SimulatedMembership all) : all_(std::move(all)) {}

  [[nodiscard]] bool is_alone() const noexcept { return all_.size() == 1; }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] const std::optional<dist::Task>& task() const noexcept { return task_; }
  [[nodiscard]] static std::string_view source() noexcept { return "simulated"; }
  [[nodiscard]] SimulatedMembership connect(const dist::NetworkOptions&) const { return all_; }
  [[nodiscard]] static std::shared_ptr<dist::PeerHealth> known_peers() { return std::make_shared<dist::PeerHealth>(); }
  static void end_strategy(const std::shared_ptr<dist::PeerHealth>&, std::chrono::nanoseconds) noexcept {}

 private:
  SimulatedMembership all_;
  std::optional<dist::Task> task_;
};
class SimulatedWorld::Part {
 public:
  Part(const SimulatedWorld& whole, const std::optional<SimulatedMembership>&, std::size_t color, std::size_t key)
      : world_(*whole.all_.split_by({color, key}, false)) {}

  [[nodiscard]] const SimulatedWorld& world() const noexcept { return world_; }

 private:
  SimulatedWorld world_;
};

/// The simulated network of a strategy's workers.
struct SimulatedWorkersNetwork {
  static constexpr std::string_view name = "simulated";

  using World = SimulatedWorld;
  using Membership = SimulatedMembership;
  using Agreement = SimulatedAgreement;
  using Reference = SimulatedNetwork::Communicator;
};

}  // namespace support
