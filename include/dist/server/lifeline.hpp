/// The connection between a coordinator and each process of its job: a pending call without reply, so that each side
/// notices when the other exits (rpc::Transport).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>

namespace dist::server {

namespace detail {

/// The greeting. The request is the identity of the coordinator's program and, only for the same program, a
/// HandshakeRequest. The reply is a HandshakeReply.
inline constexpr std::string_view greet_method = "lifeline.greet";
/// The pending call, with the number of an accepted coordinator. The reply means that the process does not serve it any
/// more.
inline constexpr std::string_view attend_method = "lifeline.attend";
/// The request is a Leave.
inline constexpr std::string_view leave_method = "lifeline.leave";

struct HandshakeRequest {
  std::uint64_t coordinator = 0;  ///< a random number
  std::string task;               ///< the receiver's task in the coordinator's list: "ps 0"
  bool takes_over = false;        ///< True if it takes over the variables held for a lost coordinator.
};

enum class HandshakeStatus : std::uint8_t {
  welcome = 0,
  busy = 1,           ///< serves another coordinator
  other_program = 2,  ///< runs another build of the program
  other_task = 3,     ///< is another task
  held = 4,           ///< holds its variables for a lost coordinator
  ended = 5,          ///< its coordinator has left, and it is about to exit
};

struct HandshakeReply {
  HandshakeStatus verdict = HandshakeStatus::welcome;
  std::string program;
  std::string task;               ///< the receiver's own task
  std::uint64_t incarnation = 0;  ///< changes when the process restarts
};

/// Announces the end of a coordinator.
struct Leave {
  std::uint64_t coordinator = 0;
  std::int32_t status = 0;  ///< exit status of all processes; 0: the work is done
};

}  // namespace detail

/// The RPC methods with which a process tracks its coordinator. It serves one at a time, and accepts another after the
/// first is lost. Must outlive its rpc::Server.
template <rpc::Exchange Exchange>
class Lifeline {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t {
    waiting,   ///< no coordinator yet
    attended,  ///< connected to a coordinator
    lost,      ///< the coordinator has disconnected without a Leave
    left,      ///< the coordinator has left; others are rejected
  };
  struct ClientState {
    State state = State::waiting;
    Clock::time_point since = Clock::now();
    int status = 0;  ///< exit status sent by the coordinator
  };

  /// `incarnation` changes when the process `own` restarts.
  Lifeline(Task own, std::uint64_t incarnation, State state = State::waiting)
      : own_(to_string(own)), incarnation_(incarnation), standing_{state} {}
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  [[nodiscard]] std::vector<rpc::Method<Exchange>> methods() {
    const auto method = [this](std::string_view name, void (Lifeline::*handle)(Exchange&)) {
      return rpc::Method<Exchange>{std::string{name},
                                   [this, handle](Exchange& exchange) { (this->*handle)(exchange); }};
    };
    return {method(detail::greet_method, &Lifeline::greet), method(detail::attend_method, &Lifeline::attend),
            method(detail::leave_method, &Lifeline::leave)};
  }

  [[nodiscard]] ClientState standing() {
    const std::lock_guard lock{mutex_};
    return looked();
  }
  /// Waits until the coordinator leaves, at most for `longest`.
  ClientState wait_for(std::chrono::milliseconds longest) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, longest, [&] { return standing_.state == State::left; });
    return looked();
  }

 private:
  /// An accepted coordinator that does not send its pending call within this time is lost.
  static constexpr std::chrono::seconds before_attending{30};

  [[gnu::cold]] void greet(Exchange& exchange) {
    ArchiveReader request{exchange.pieces(), "The greeting of a coordinator"};
    const bool same = request.get<std::string>() == binary_identity();
    detail::HandshakeReply answer{detail::HandshakeStatus::other_program, binary_identity(), own_, incarnation_};
    if (same) {
      const auto greeting = request.get<detail::HandshakeRequest>();
      request.expect_end();
      answer.verdict = greeting.task != own_ ? detail::HandshakeStatus::other_task : take(greeting);
    }
    exchange.reply(to_bytes(answer));
  }
  /// Accepts or rejects a coordinator. Accepts the current one again after a lost connection.
  [[nodiscard, gnu::cold]] detail::HandshakeStatus take(const detail::HandshakeRequest& greeting) {
    const std::lock_guard lock{mutex_};
    const State state = looked().state;
    if (state == State::left) return detail::HandshakeStatus::ended;
    if (state != State::waiting && greeting.coordinator != coordinator_) {
      if (state == State::attended) return detail::HandshakeStatus::busy;
      if (!greeting.takes_over) return detail::HandshakeStatus::held;
    }
    let_go();
    coordinator_ = greeting.coordinator;
    standing_ = {State::attended, Clock::now()};
    return detail::HandshakeStatus::welcome;
  }
  [[gnu::cold]] void attend(Exchange& exchange) {
    const auto coordinator = from_bytes<std::uint64_t>(exchange.pieces(), "The lifeline request of a coordinator");
    const std::lock_guard lock{mutex_};
    if (standing_.state != State::attended || coordinator != coordinator_) return exchange.reply({});
    let_go();
    attending_.emplace(exchange.keep());
  }
  [[gnu::cold]] void leave(Exchange& exchange) {
    const auto farewell = from_bytes<detail::Leave>(exchange.pieces(), "The leave request of a coordinator");
    {
      const std::lock_guard lock{mutex_};
      const bool has_one = standing_.state == State::attended || standing_.state == State::lost;
      if (has_one && farewell.coordinator == coordinator_) {
        let_go();
        standing_ = {State::left, Clock::now(), farewell.status};
      }
    }
    exchange.reply({});
    changed_.notify_all();
  }

  /// Requires `mutex_`.
  ClientState looked() {
    if (standing_.state == State::attended &&
        (attending_ ? attending_->cancelled() : Clock::now() - standing_.since > before_attending)) {
      attending_.reset();
      standing_ = {State::lost, Clock::now()};
    }
    return standing_;
  }
  /// Requires `mutex_`.
  void let_go() {
    if (attending_) attending_->reply({});
    attending_.reset();
  }

  const std::string own_;
  const std::uint64_t incarnation_;
  std::mutex mutex_;
  dist::detail::ConditionVariable changed_;
  ClientState standing_;
  std::uint64_t coordinator_ = 0;
  std::optional<Exchange> attending_;
};

}  // namespace dist::server
