#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/introduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>
#include <dist/net/deadline.hpp>

namespace dist::mpi::detail {

/// What a process knows of the processes that it has calls with: when it heard of them, and which are lost. One thread at a
/// time.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  /// How many calls with a process go on and channels to it are ready, and the shortest silence after which one of them takes
  /// it for lost.
  struct Interest {
    std::size_t users = 0;
    net::Milliseconds silence = net::Milliseconds::max();
  };

  /// This process is `members[rank]`.
  Peers(std::vector<MemberIdentity> members, std::size_t rank) : members_(std::move(members)), rank_(rank) {
    watch_near(members_, rank_, health_);
    states_.resize(members_.size());
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::string_view host(std::size_t peer) const { return members_[peer].host.data(); }
  /// "rank 3 on host east"
  [[nodiscard]] std::string name(std::size_t peer) const { return text("rank ", peer, " on host ", host(peer)); }
  [[nodiscard]] PeerHealth& health() noexcept { return health_; }

  /// Why nobody can call that process any more; nothing where it lives.
  [[nodiscard]] const std::optional<std::string>& lost(std::size_t peer) const { return states_[peer].lost; }
  /// Whether it is lost because its process has ended, so that nothing of it is under way.
  [[nodiscard]] bool is_dead(std::size_t peer) const { return states_[peer].dead; }
  /// For how long it has been lost.
  [[nodiscard]] Clock::duration lost_for(std::size_t peer, Clock::time_point now) const {
    return now - states_[peer].lost_since;
  }
  /// For good. The first reason stays.
  void lose(std::size_t peer, std::string why, bool dead) {
    State& state = states_[peer];
    state.dead = state.dead || dead;
    if (state.lost) return;
    state.lost = std::move(why);
    state.lost_since = Clock::now();
  }

  /// The process lives.
  void hear(std::size_t peer) { states_[peer].heard = Clock::now(); }
  /// There is one more call with it. From the first on its silence counts.
  void meet(std::size_t peer) {
    State& state = states_[peer];
    if (state.users++ == 0) state.heard = std::max(state.heard, Clock::now());
  }

  /// Calls `ended(peer, why)` for each process of this machine that has ended since the last time.
  template <class Ended>
  void look_for_ends(Ended&& ended) {
    if (!health_.find_lost()) return;
    for (std::size_t peer = 0; peer < size(); ++peer) {
      if (states_[peer].dead) continue;
      const std::optional<LostPeer> found = health_.find_lost(peer);
      if (found && found->rank == peer) ended(peer, text(name(peer), ": ", found->why));
    }
  }
  /// Calls `ping(peer)` for each process that is to give a sign of life, and `silent(peer, why)` for one that has not given
  /// any for too long. `interest` is one for each process. `was_away`: this process did not run for long, and so has not
  /// listened either.
  template <class Ping, class Silent>
  void look_for_silence(const std::vector<Interest>& interest, Clock::time_point now, bool was_away, Ping&& ping,
                        Silent&& silent) {
    for (std::size_t peer = 0; peer < size(); ++peer) {
      State& state = states_[peer];
      const auto [users, silence] = interest[peer];
      if (std::exchange(state.users, users) == 0 || was_away) state.heard = std::max(state.heard, now);
      if (users == 0 || state.lost || peer == rank_) continue;
      if (now - state.heard > silence) {
        const std::string stopped = health_.stopped();
        silent(peer, text(name(peer), ": it has been silent for ", net::seconds(silence),
                          stopped.empty() ? "" : ", and a signal has stopped ", stopped));
      } else if (now - state.heard > silence / 3 && now - state.pinged > silence / 6) {
        state.pinged = now;
        ping(peer);
      }
    }
  }

 private:
  struct State {
    Clock::time_point heard, pinged;
    std::size_t users = 0;  ///< Interest::users of the last look, and the calls begun since
    std::optional<std::string> lost;
    Clock::time_point lost_since;
    bool dead = false;
  };

  std::vector<MemberIdentity> members_;
  std::size_t rank_;
  PeerHealth health_;
  std::vector<State> states_;
};

}  // namespace dist::mpi::detail
