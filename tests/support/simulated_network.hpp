// A network in virtual time: up to 1,024 virtual ranks in one thread, which run the product's own code over messages,
// each with a clock. Deterministic: the same program takes the same virtual time.
//
// Costs follow the model in dist/comm/messages/algorithm_thresholds.hpp. A message is transferred when its sender and
// its receiver have requested it, without buffering.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/messages/message_choice.hpp>  // collectives of members that pass messages
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>

#include <support/fiber.hpp>
#include <support/strand.hpp>

namespace support {

/// Controls whether messages transfer their bytes. If not, virtual ranks may share memory, and only the time is
/// correct: 1,024 nodes with 100 MB each then fit into this machine.
enum class Payload : unsigned char { travels, stays };

/// Virtual ranks run one at a time on separate stacks, or in separate threads, for code with thread_local variables.
enum class RunOn : unsigned char { stacks, threads };

/// The bytes that the running virtual rank has combined by Metered operations, and that its network has not charged
/// yet.
inline std::size_t metered_bytes = 0;

/// `Op` with a count of the combined bytes.
template <class Op>
struct Metered : Op {
  template <dist::Reducible T>
  constexpr T operator()(T a, T b) const {
    metered_bytes += sizeof(T);
    return Op::operator()(a, b);
  }
};

class SimulatedNetwork {
 public:
  class Communicator;

  SimulatedNetwork(std::size_t ranks, const dist::MessageCosts& costs, Payload payload = Payload::travels,
                   RunOn run_on = RunOn::stacks)
      : costs_(costs), payload_(payload), run_on_(run_on), ranks_(ranks) {}
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  /// Runs `body(communicator)` on every virtual rank, starting at time 0. Returns the end time of the last rank in
  /// seconds. Throws the first exception of a rank, or std::runtime_error on a deadlock.
  template <class Body>
  double run(Body&& body);

  /// The maximum number of messages that a member sent in the last run, and the total of all members.
  [[nodiscard]] std::size_t most_messages() const {
    std::size_t most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.sent);
    return most;
  }
  [[nodiscard]] std::size_t messages() const {
    std::size_t sum = 0;
    for (const Rank& rank : ranks_) sum += rank.sent;
    return sum;
  }

 private:
  static constexpr std::size_t nobody = ~std::size_t{0};

  /// A posted message to a rank, in one group of ranks.
  struct Letter {
    std::uint64_t group = 0;
    std::size_t from = 0;
    double arrives = 0;
    std::vector<std::byte> bytes;
  };
  struct Rank {
    std::unique_ptr<Strand> strand;
    std::deque<Letter> letters;
    bool awaits_letters = false;
    std::uint64_t groups = 0;  // opened by it
    double clock = 0;
    double sends_until = 0;
    double receives_until = 0;
    std::size_t sent = 0;
    std::size_t announced = 0;
    std::size_t barriers = 0;
    std::vector<dist::AlignedBuffer<std::byte>> scratch = std::vector<dist::AlignedBuffer<std::byte>>(4);
    std::string waits_for;  // while it cannot continue
  };
  struct Message {
    std::span<const std::byte> out;
    std::span<std::byte> in;
    bool is_sent = false;
    bool is_received = false;  // requested by sender and receiver
    double arrives = 0;
    std::size_t waiting[2] = {nobody, nobody};  // the sender and the receiver that wait for its end
    int finished = 0;
  };
  /// The messages from one member to another, in the order of sending.
  struct Channel {
    std::deque<Message> messages;
    std::uint64_t first = 0;  // the number of the first message
    std::uint64_t sent = 0;
    std::uint64_t received = 0;

    [[nodiscard]] Message& at(std::uint64_t number) {
      while (first + messages.size() <= number) messages.emplace_back();
      return messages[number - first];
    }
  };
  /// Thrown to end ranks in a deadlock.
  struct Stopped {};
  struct Later {
    bool operator()(const std::pair<double, std::size_t>& one, const std::pair<double, std::size_t>& other) const {
      return one > other;
    }
  };

  [[nodiscard]] Channel& channel(std::uint64_t group, std::size_t from, std::size_t to) {
    return channels_[(group * ranks_.size() + from) * ranks_.size() + to];
  }

  void charge(Rank& rank) {
    rank.clock += static_cast<double>(std::exchange(metered_bytes, 0)) * costs_.per_reduced_byte;
  }
  /// Runs all ranks with earlier clocks first, so that events occur in the order of time.
  void take_turn(std::size_t self) {
    Rank& rank = ranks_[self];
    charge(rank);
    if (ready_.empty() || !(ready_.top() < std::pair{rank.clock, self})) return;
    ready_.emplace(rank.clock, self);
    pause(rank);
  }
  template <class What>
  void wait(std::size_t self, What&& what) {
    ranks_[self].waits_for = what();
    pause(ranks_[self]);
  }
  void pause(Rank& rank) {
    rank.strand->pause();
    if (stopping_) throw Stopped{};
  }
  void wake(std::size_t other, double when) {
    ranks_[other].clock = std::max(ranks_[other].clock, when);
    ready_.emplace(ranks_[other].clock, other);
  }

  /// Returns the arrival time of `bytes` bytes that may be sent at `now`.
  [[nodiscard]] double arrival(std::size_t bytes, std::size_t from, std::size_t to, double now) {
    const double begins = std::max({now, ranks_[from].sends_until, ranks_[to].receives_until});
    ++ranks_[from].sent;
    return ranks_[from].sends_until = ranks_[to].receives_until =
               begins + costs_.latency + static_cast<double>(bytes) * costs_.per_byte;
  }
  void travel(Message& message, std::size_t from, std::size_t to, double now) {
    if (message.out.size() != message.in.size())
      throw std::logic_error(dist::concat("rank ", to, " expects ", message.in.size(), " bytes of rank ", from,
                                          ", which sends ", message.out.size()));
    message.arrives = arrival(message.out.size(), from, to, now);
    if (payload_ == Payload::travels && !message.in.empty())
      std::memcpy(message.in.data(), message.out.data(), message.in.size());
    for (const std::size_t waiting : message.waiting)
      if (waiting != nobody) wake(waiting, message.arrives);
  }

  dist::MessageCosts costs_;
  Payload payload_;
  RunOn run_on_;
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Channel> channels_;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, Later> ready_;
  std::vector<dist::CollectiveCallRecord> calls_;
  std::vector<std::size_t> at_barrier_;
  std::vector<dist::AlignedBuffer<std::byte>> outgrown_;  // scratch memory that may still be in use
  std::exception_ptr thrown_;
  bool stopping_ = false;
};

/// A virtual rank's membership: a copyable handle that models PassesMessages.
class SimulatedNetwork::Communicator {
 public:
  struct Transfer {
    std::uint64_t group = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    std::uint64_t number = 0;
  };

  Communicator(SimulatedNetwork& network, std::size_t rank) : network_(&network), rank_(rank) {}

  /// Returns the same rank, with messages separate from other groups.
  [[nodiscard]] Communicator in_group(std::uint64_t group) const {
    Communicator other = *this;
    other.group_ = group;
    return other;
  }
  [[nodiscard]] std::uint64_t group() const noexcept { return group_; }
  /// Returns the number of a new group. All ranks must open the same groups in the same order.
  [[nodiscard]] std::uint64_t open_group() const { return ++me().groups; }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return network_->ranks_.size(); }
  /// Returns the time of this rank's clock in seconds.
  [[nodiscard]] double seconds() const {
    network_->charge(me());
    return me().clock;
  }

  /// A failure ends the whole run, so notifications are unnecessary.
  void begin_attempt() const noexcept {}
  void cancel(const dist::FailureNotice&) const noexcept {}
  void cancel(const std::exception_ptr&) const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }
  [[nodiscard]] Communicator with_timeout(std::chrono::nanoseconds) const { return *this; }

  /// Takes no virtual time.
  void barrier() const {
    network_->take_turn(rank_);
    std::vector<std::size_t>& arrived = network_->at_barrier_;
    arrived.push_back(rank_);
    if (arrived.size() < size()) return network_->wait(rank_, [] { return "a barrier"; });
    for (const std::size_t other : std::exchange(arrived, {}))
      if (other != rank_) network_->wake(other, me().clock);
  }

  /// Compares the calls, in no virtual time. Throws CollectiveMismatch if a member announced a different one.
  void announce(const dist::CollectiveCall& call) const {
    network_->take_turn(rank_);
    const std::size_t number = me().announced++;
    if (number == network_->calls_.size()) network_->calls_.emplace_back(call);
    if (network_->calls_[number].fingerprint != call.fingerprint())
      throw dist::detail::different_calls("rank", dist::concat("rank ", rank_, " ", describe(call), ", another one ",
                                                               describe(network_->calls_[number].call())));
  }

  [[nodiscard]] Transfer start_send(std::span<const std::byte> bytes, std::size_t to) const {
    return start(rank_, to, [&](Channel& channel) {
      Message& message = channel.at(channel.sent);
      message.out = bytes;
      message.is_sent = true;
      return channel.sent++;
    });
  }
  [[nodiscard]] Transfer start_receive(std::span<std::byte> bytes, std::size_t from) const {
    return start(from, rank_, [&](Channel& channel) {
      Message& message = channel.at(channel.received);
      message.in = bytes;
      message.is_received = true;
      return channel.received++;
    });
  }
  void wait(Transfer& transfer) const {
    network_->take_turn(rank_);
    Channel& channel = network_->channel(transfer.group, transfer.from, transfer.to);
    const auto is_under_way = [&] {
      const Message& message = channel.at(transfer.number);
      return message.is_sent && message.is_received;
    };
    if (!is_under_way()) {
      const bool sends = transfer.from == rank_;
      channel.at(transfer.number).waiting[sends ? 0 : 1] = rank_;
      network_->wait(rank_, [&] {
        return sends ? dist::concat("rank ", transfer.to, " to receive")
                     : dist::concat("a message of rank ", transfer.from);
      });
    }
    me().clock = std::max(me().clock, channel.at(transfer.number).arrives);
    ++channel.at(transfer.number).finished;
    while (!channel.messages.empty() && channel.messages.front().finished == 2) {
      channel.messages.pop_front();
      ++channel.first;
    }
    network_->take_turn(rank_);
  }

  /// Posts a small message, which is buffered until its receiver takes it: returns at once.
  void post(std::span<const std::byte> bytes, std::size_t to) const {
    network_->take_turn(rank_);
    const double arrives = network_->arrival(bytes.size(), rank_, to, me().clock);
    Rank& receiver = network_->ranks_[to];
    receiver.letters.push_back({group_, rank_, arrives, {bytes.begin(), bytes.end()}});
    if (std::exchange(receiver.awaits_letters, false)) network_->wake(to, arrives);
  }
  /// Calls `read(from, bytes)` for the next arrived message to this rank in its group. Returns false without a message.
  template <class Read>
  bool take(Read&& read) const {
    std::deque<Letter>& letters = me().letters;
    const auto next = std::find_if(letters.begin(), letters.end(), [&](const Letter& letter) {
      return letter.group == group_ && letter.arrives <= me().clock;
    });
    if (next == letters.end()) return false;
    const Letter letter = std::move(*next);
    letters.erase(next);
    read(letter.from, std::span{letter.bytes});
    return true;
  }
  /// Waits for a message for `take`.
  void await_posted() const {
    network_->take_turn(rank_);
    while (true) {
      double first = std::numeric_limits<double>::infinity();
      for (const Letter& letter : me().letters)
        if (letter.group == group_) first = std::min(first, letter.arrives);
      if (first <= me().clock) return;
      if (first < std::numeric_limits<double>::infinity()) {
        me().clock = first;
        return network_->take_turn(rank_);
      }
      me().awaits_letters = true;
      network_->wait(rank_, [] { return "what is posted to it"; });
    }
  }

  [[nodiscard]] std::byte* scratch(std::size_t which, std::size_t bytes) const {
    dist::AlignedBuffer<std::byte>& memory =
        network_->ranks_[network_->payload_ == Payload::travels ? rank_ : 0].scratch.at(which);
    if (memory.size() < bytes) {
      dist::AlignedBuffer<std::byte> larger{bytes};
      std::swap(memory, larger);
      network_->outgrown_.push_back(std::move(larger));
    }
    return memory.data();
  }

 private:
  [[nodiscard]] Rank& me() const { return network_->ranks_[rank_]; }

  template <class Ask>
  [[nodiscard]] Transfer start(std::size_t from, std::size_t to, Ask&& ask) const {
    network_->take_turn(rank_);
    Channel& channel = network_->channel(group_, from, to);
    const std::uint64_t number = ask(channel);
    Message& message = channel.at(number);
    if (message.is_sent && message.is_received) network_->travel(message, from, to, me().clock);
    return {group_, from, to, number};
  }

  SimulatedNetwork* network_;
  std::size_t rank_;
  std::uint64_t group_ = 0;
};

static_assert(dist::PassesMessages<SimulatedNetwork::Communicator> &&
              dist::ReportsFailures<SimulatedNetwork::Communicator>);

template <class Body>
double SimulatedNetwork::run(Body&& body) {
  channels_.clear();
  outgrown_.clear();
  calls_.clear();
  at_barrier_.clear();
  thrown_ = nullptr;
  metered_bytes = 0;
  for (std::size_t self = 0; self < ranks_.size(); ++self) {
    ranks_[self] = {};
    const auto whole = [this, self, &body] {
      try {
        body(Communicator{*this, self});
        charge(ranks_[self]);
      } catch (const Stopped&) {
      } catch (...) {
        if (!thrown_) thrown_ = std::current_exception();
      }
    };
    if (run_on_ == RunOn::stacks)
      ranks_[self].strand = std::make_unique<Fiber>(whole);
    else
      ranks_[self].strand = std::make_unique<ThreadStrand>(whole);
    ready_.emplace(0.0, self);
  }
  while (!ready_.empty()) {
    const std::size_t next = ready_.top().second;
    ready_.pop();
    ranks_[next].strand->resume();
    if (thrown_) break;
  }
  ready_ = {};
  std::string waiting;
  double ends = 0;
  stopping_ = true;
  for (std::size_t self = 0; self < ranks_.size(); ++self) {
    Rank& rank = ranks_[self];
    ends = std::max(ends, rank.clock);
    if (!rank.strand->has_ended() && waiting.empty()) waiting = dist::concat("rank ", self, " for ", rank.waits_for);
    while (!rank.strand->has_ended()) rank.strand->resume();
  }
  ready_ = {};
  stopping_ = false;
  if (thrown_) std::rethrow_exception(thrown_);
  if (!waiting.empty()) throw std::runtime_error(dist::concat("all wait for each other: ", waiting));
  return ends;
}

}  // namespace support
