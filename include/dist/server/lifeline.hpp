/// What ties the processes of a job with parameter servers to their coordinator: a call from it to each, which is kept and
/// not answered, so that each side sees the end of the other (rpc::Transport).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/task.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/binary.hpp>

namespace dist::server {

namespace detail {

/// A coordinator says who it is and whom it takes the process for. The request is the identity of its program and, for a
/// process of the same program only, a HandshakeRequest; the reply is a HandshakeReply.
inline constexpr std::string_view greet_method = "lifeline.greet";
/// The number of a coordinator that was welcome. It is answered when the process serves it no longer.
inline constexpr std::string_view attend_method = "lifeline.attend";
/// A Leave.
inline constexpr std::string_view leave_method = "lifeline.leave";

struct HandshakeRequest {
  std::uint64_t coordinator = 0;  ///< a random number
  std::string task;               ///< which the process is in the coordinator's list: "ps 0"
  bool takes_over = false;        ///< it wants what the process holds for a coordinator that was lost
};

enum class HandshakeStatus : std::uint8_t {
  welcome = 0,
  busy = 1,           ///< it serves another coordinator
  other_program = 2,  ///< it runs another build of the program
  other_task = 3,     ///< it is another task
  held = 4,           ///< it holds what it has for a coordinator that was lost
  ended = 5,          ///< its coordinator has left, and it ends
};

struct HandshakeReply {
  HandshakeStatus verdict = HandshakeStatus::welcome;
  std::string program;
  std::string task;               ///< which the process is
  std::uint64_t incarnation = 0;  ///< another number after it was started again
};

/// A coordinator ends.
struct Leave {
  std::uint64_t coordinator = 0;
  std::int32_t status = 0;  ///< with which all end; 0: the work is done
};

}  // namespace detail

/// A process's side: the methods with which it sees whether it has a coordinator. One at a time; another one is welcome when
/// the one before is gone. It must outlive its rpc::Server.
template <rpc::Exchange Exchange>
class Lifeline {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t {
    waiting,   ///< no coordinator has come yet
    attended,  ///< there is one
    lost,      ///< it has gone without a word
    left,      ///< it has announced its end, so other peers are refused
  };
  struct ClientState {
    State state = State::waiting;
    Clock::time_point since = Clock::now();
    int status = 0;  ///< with which the coordinator has left
  };

  /// Of the process that is `own`; `incarnation` is another number after it was started again.
  Lifeline(Task own, std::uint64_t incarnation, State state = State::waiting)
      : own_(to_string(own)), incarnation_(incarnation), standing_{state} {}
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  [[nodiscard]] std::vector<rpc::Method<Exchange>> methods() {
    return {{std::string{detail::greet_method}, [this](Exchange& exchange) { greet(exchange); }},
            {std::string{detail::attend_method}, [this](Exchange& exchange) { attend(exchange); }},
            {std::string{detail::leave_method}, [this](Exchange& exchange) { leave(exchange); }}};
  }

  [[nodiscard]] ClientState standing() {
    const std::lock_guard lock{mutex_};
    return looked();
  }
  /// Waits until the coordinator leaves, but not longer.
  ClientState wait_for(std::chrono::milliseconds longest) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, longest, [&] { return standing_.state == State::left; });
    return looked();
  }

 private:
  /// A coordinator that was welcome attends within this time, or is taken for gone.
  static constexpr std::chrono::seconds before_attending{30};

  void greet(Exchange& exchange) {
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
  /// Whether the coordinator is that of this process from now on. One that has lost the connection comes again.
  [[nodiscard]] detail::HandshakeStatus take(const detail::HandshakeRequest& greeting) {
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
  void attend(Exchange& exchange) {
    const auto coordinator = from_bytes<std::uint64_t>(exchange.pieces(), "The lifeline of a coordinator");
    const std::lock_guard lock{mutex_};
    if (standing_.state != State::attended || coordinator != coordinator_) return exchange.reply({});
    let_go();
    attending_.emplace(exchange.keep());
  }
  void leave(Exchange& exchange) {
    const auto farewell = from_bytes<detail::Leave>(exchange.pieces(), "The farewell of a coordinator");
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

  /// `mutex_` is held.
  ClientState looked() {
    if (standing_.state == State::attended &&
        (attending_ ? attending_->cancelled() : Clock::now() - standing_.since > before_attending)) {
      attending_.reset();
      standing_ = {State::lost, Clock::now()};
    }
    return standing_;
  }
  /// `mutex_` is held.
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
