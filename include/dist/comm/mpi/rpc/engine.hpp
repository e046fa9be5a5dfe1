#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/health/end_process.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/farewell.hpp>
#include <dist/comm/mpi/introduction.hpp>
#include <dist/comm/mpi/rpc/call_transfers.hpp>
#include <dist/comm/mpi/rpc/open_call.hpp>
#include <dist/comm/mpi/rpc/packet.hpp>
#include <dist/comm/mpi/rpc/peers.hpp>
#include <dist/comm/mpi/rpc/postbox.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/say.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/tls_files.hpp>

namespace dist::mpi::detail {

/// Throws InvalidArgument for files of TLS: MPI does not encrypt.
inline void refuse(const net::TlsFiles& files) {
  if (!files.empty())
    throw InvalidArgument(
        "Calls over MPI cannot be encrypted", text("the options name ", files.certificate, " for TLS"),
        "Use dist::Grpc, or trust the network and give no options for TLS (unset DIST_TLS_CERT_FILE and "
        "the others)");
}

/// What moves the calls of a process over MPI: a communicator of its own, and a thread that looks after it while nobody
/// waits. MPI is called under one lock, by whichever thread has something to do. One for each process, which lives as long
/// as MPI.
class CallEngine {
 public:
  using Clock = std::chrono::steady_clock;

  /// The engine of this process. The first call is one of all processes of `MPI_COMM_WORLD`; it starts MPI where the program
  /// has not. Throws InvalidArgument where MPI does not let several threads call it, or is finalised; DeadlineExceeded where
  /// not all processes come.
  [[nodiscard]] static CallEngine& of_process() {
    static CallEngine& engine = *new CallEngine;
    static const AtExit end{engine};
    return engine;
  }

  CallEngine(const CallEngine&) = delete;
  CallEngine& operator=(const CallEngine&) = delete;

  [[nodiscard]] MPI_Comm native() const noexcept { return comm_; }
  /// Who takes part, and what this process knows of them. What changes needs a Visit.
  [[nodiscard]] const Peers& peers() const noexcept { return *peers_; }

  /// Stands around whatever looks at calls or moves them. What has to be done without the lock is done at its end.
  class Visit {
   public:
    explicit Visit(CallEngine& engine) : engine_(engine), lock(engine.mutex_) {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() { end(); }
    /// Gives the lock back, and does what was left for then.
    void end() {
      const std::vector<dist::detail::KeptFunction<void>> after = std::exchange(engine_.after_, {});
      lock.unlock();
      for (const auto& each : after) each();
    }

   private:
    CallEngine& engine_;

   public:
    std::unique_lock<std::mutex> lock;
  };

  // All that follows is called during a Visit.

  void after_visit(dist::detail::KeptFunction<void> function) { after_.push_back(std::move(function)); }

  /// To a process that is lost nothing is sent.
  void send(std::size_t peer, const Packet& packet, rpc::GatherList content = {}) {
    if (peers_->lost(peer)) return;
    busy_since_ = Clock::now();
    wake_thread();
    try {
      postbox_->send(peer, packet.bytes(content));
    } catch (const MpiError& error) {
      lose_later(peer, error.what());
    }
  }
  [[nodiscard]] CallTransfers& transfers() noexcept { return *transfers_; }

  /// Returns the number by which the other side answers.
  std::uint64_t add_client_call(std::shared_ptr<OpenCall> call) {
    peers_->meet(call->peer);
    of_clients_[++last_call_] = std::move(call);
    return last_call_;
  }
  void remove_client_call(std::uint64_t number) { of_clients_.erase(number); }
  void add_server_call(std::uint64_t number, std::shared_ptr<OpenCall> call) {
    peers_->meet(call->peer);
    const std::size_t peer = call->peer;
    of_servers_[{peer, number}] = std::move(call);
  }
  void remove_server_call(std::size_t peer, std::uint64_t number) { of_servers_.erase({peer, number}); }

  /// Whether the port was free.
  [[nodiscard]] bool listen(std::uint16_t port, Listener& listener) {
    return listeners_.try_emplace(port, &listener).second;
  }
  void stop_listening(std::uint16_t port) { listeners_.erase(port); }
  void watch(std::weak_ptr<ServerWatch> watch) {
    std::erase_if(watches_, [](const std::weak_ptr<ServerWatch>& each) { return each.expired(); });
    watches_.push_back(std::move(watch));
  }

  /// Waits until `done()` or `end`; whoever makes it true notifies `changed`. The caller moves calls itself for a while.
  template <class Done>
  void wait(Visit& visit, dist::detail::ConditionVariable& changed, Clock::time_point end, Done&& done) {
    ++pollers_;
    const Clock::time_point until = std::min(end, Clock::now() + poll_time_);
    while (!done() && Clock::now() < until) rest(visit, advance());
    --pollers_;
    wake_thread();
    while (!done() && Clock::now() < end) {
      rest(visit, true);
      if (done()) return;
      changed.wait_until(visit.lock, std::min(end, Clock::now() + std::chrono::milliseconds{100}));
    }
  }

 private:
  static constexpr int packet_tag = 1;
  static constexpr std::chrono::milliseconds between_looks{1}, between_checks{10};
  static constexpr unsigned looks_at_transfers = 16;
  /// A waiting caller moves calls itself for so long, which saves it two switches of threads.
  static constexpr std::chrono::microseconds poll_time_on_own_core{200}, poll_time_on_shared_core{20};
  /// For all processes to come to the first call of this class.
  static constexpr std::chrono::minutes start_timeout{3};
  /// For all processes to come to their end.
  static constexpr std::chrono::minutes end_timeout{2};
  /// The thread polls without a pause for so long after something has moved.
  static constexpr std::chrono::milliseconds hot_time{2};

  /// Where this library has started MPI, the process meets the others at its end, and finalises it.
  class AtExit {
   public:
    explicit AtExit(CallEngine& engine) : engine_(engine) {}
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;
    ~AtExit() {
      if (!engine_.farewell_ || !is_running()) return;
      engine_.end_without_lost_ones();
      finalize_together(engine_.environment_, &*engine_.farewell_, engine_.peers_->health(), end_timeout, [] {});
    }

   private:
    CallEngine& engine_;
  };

  CallEngine() : environment_(std::make_unique<Environment>(ThreadLevel::multiple)) {
    if (environment_->provided() != ThreadLevel::multiple)
      throw InvalidArgument(
          "Calls by MPI need threads that may all call it",
          text("MPI was initialised with ", to_string(environment_->provided())),
          "Initialise it with MPI_Init_thread and MPI_THREAD_MULTIPLE, or leave that to this library");
    const std::unique_ptr<Introduction> introduced = introduce(ref(MPI_COMM_WORLD), {.timeout = start_timeout});
    comm_ = introduced->comm;
    const std::size_t rank = rank_in(comm_);
    poll_time_ = introduced->count_near(rank) > std::thread::hardware_concurrency() ? poll_time_on_shared_core
                                                                                    : poll_time_on_own_core;
    peers_.emplace(std::move(introduced->members), rank);
    if (environment_->owns_mpi()) farewell_.emplace(peers_->name(rank), rank);
    postbox_.emplace(comm_, packet_tag);
    transfers_.emplace(comm_, [this](std::size_t peer, const Packet& packet) { send(peer, packet); });
    end_with_mpi();
    thread_ = std::thread{[this] { run(); }};
  }

  void run() {
    dist::detail::name_this_thread("dist mpi calls");
    for (;;) {
      Clock::duration idle{0};
      bool others_poll = false;
      bool moved = false;
      {
        const Visit visit{*this};
        if (closed_) return;
        others_poll = pollers_ != 0;
        if (!others_poll) moved = advance();
        idle = Clock::now() - busy_since_;
      }
      if (!others_poll && idle < hot_time) {
        if (!moved) sched_yield();
        continue;
      }
      // A wait lasts longer by an eighth at most.
      std::unique_lock lock{mutex_};
      const auto pause = others_poll ? Clock::duration{std::chrono::milliseconds{1}}
                                     : std::min<Clock::duration>(idle / 8, std::chrono::milliseconds{1});
      if (closed_) return;
      asleep_ = true;
      wake_.wait_for(lock, pause);
      asleep_ = false;
    }
  }
  void wake_thread() {
    if (asleep_ && pollers_ == 0) wake_.notify_one();
  }

  /// Lets others have the lock, and does what has to be done without it.
  static void rest(Visit& visit, bool moved) {
    visit.end();
    if (!moved) sched_yield();
    visit.lock.lock();
  }

  bool advance() {
    if (closed_) return false;
    bool moved = false;
    try {
      moved = postbox_->advance([&](std::size_t peer, std::vector<std::byte> bytes) { take(peer, std::move(bytes)); },
                                [&](std::size_t peer) { peers_->hear(peer); });
      // Fragments of a part come and go unseen: where others need this core, several at a time save switches.
      for (unsigned again = 0; again < (transfers_->are_under_way() ? looks_at_transfers : 1); ++again)
        moved = transfers_->advance([&](std::size_t peer) { peers_->hear(peer); }) || moved;
    } catch (const MpiError& error) {  // nobody says of which process
      for (std::size_t peer = 0; peer < peers_->size(); ++peer) lose(peer, error.what(), false);
    }
    const Clock::time_point now = Clock::now();
    if (moved) busy_since_ = now;
    if (now - looked_ >= between_looks) look(now);
    return moved;
  }

  void take(std::size_t peer, std::vector<std::byte> bytes) {
    peers_->hear(peer);
    Packet packet;
    try {
      packet = Packet::from(std::move(bytes));
    } catch (const net::FrameError&) {
      return;  // there is nobody to answer
    }
    const TransferKey key{peer, packet.call, packet.of_reply};
    switch (packet.kind) {
      case PacketKind::request:
        if (const auto listener = listeners_.find(packet.port); listener == listeners_.end())
          send(peer, {.kind = PacketKind::absent, .call = packet.call});
        else if (!of_servers_.contains({peer, packet.call}))
          listener->second->accept(peer, std::move(packet));
        return;
      case PacketKind::reply:
      case PacketKind::absent:
        if (const auto call = of_clients_.find(packet.call); call != of_clients_.end() && call->second->peer == peer)
          std::shared_ptr<OpenCall> { call->second } -> take(std::move(packet));
        return;
      case PacketKind::cancel:
        if (const auto call = of_servers_.find({peer, packet.call}); call != of_servers_.end())
          std::shared_ptr<OpenCall> { call->second } -> take(std::move(packet));
        return;
      case PacketKind::ready:
        return transfers_->take_ready(key, packet.tag, packet.count);
      case PacketKind::abandon:
        return transfers_->take_abandon(key, packet.count);
      case PacketKind::gone:
        return tell_watches(peer, packet.port);
      case PacketKind::ping:
        return send(peer, {.kind = PacketKind::pong});
      case PacketKind::pong:
        return;
    }
  }
  void tell_watches(std::size_t peer, std::optional<std::uint16_t> port) {
    for (const std::weak_ptr<ServerWatch>& each : watches_)
      if (const auto watch = each.lock()) watch->gone(peer, port);
  }

  // ---- time ----

  [[nodiscard]] std::vector<std::shared_ptr<OpenCall>> open_calls() const {
    std::vector<std::shared_ptr<OpenCall>> calls;
    calls.reserve(of_clients_.size() + of_servers_.size());
    for (const auto& [number, call] : of_clients_) calls.push_back(call);
    for (const auto& [number, call] : of_servers_) calls.push_back(call);
    return calls;
  }
  void look(Clock::time_point now) {
    looked_ = now;
    const std::vector<std::shared_ptr<OpenCall>> calls = open_calls();
    for (const auto& call : calls) call->look(now);
    for (auto& [peer, why] : std::exchange(to_lose_, {})) lose(peer, why, false);
    if (now - checked_ < between_checks) return;
    // A thread that did not run for long has not heard others either.
    const bool was_away = now - checked_ > std::chrono::seconds{1};
    checked_ = now;
    peers_->look_for_ends([&](std::size_t peer, std::string why) { lose(peer, std::move(why), true); });
    std::vector<Peers::Interest> interest(peers_->size());
    const auto count = [&](const auto& user) {
      Peers::Interest& its = interest[user.peer];
      ++its.users;
      its.silence = std::min(its.silence, user.silence);
    };
    for (const auto& call : calls) count(*call);
    for (const std::weak_ptr<ServerWatch>& each : watches_)
      if (const auto watch = each.lock(); watch && watch->is_ready()) count(*watch);
    peers_->look_for_silence(
        interest, now, was_away, [&](std::size_t peer) { send(peer, {.kind = PacketKind::ping}); },
        [&](std::size_t peer, std::string why) { lose(peer, std::move(why), false); });
    for (std::size_t peer = 0; peer < peers_->size(); ++peer)
      if (peers_->lost(peer) && !peers_->is_dead(peer) && transfers_->lends_to(peer) &&
          peers_->lost_for(peer, now) > after_silence)
        end_of_lent_memory(peer);
  }

  // ---- losses ----

  void lose_later(std::size_t peer, std::string why) { to_lose_.emplace_back(peer, std::move(why)); }
  /// For good: what MPI has begun with a process cannot be taken up again.
  void lose(std::size_t peer, std::string why, bool dead) {
    peers_->lose(peer, std::move(why), dead);
    for (const auto& call : open_calls())
      if (call->peer == peer) call->lose(*peers_->lost(peer));
    tell_watches(peer, std::nullopt);
    if (!dead) return;
    transfers_->drop(peer);
    postbox_->drop(peer);
  }
  /// MPI cannot give memory back that a process may still read which has stopped in the middle of it.
  [[noreturn]] void end_of_lent_memory(std::size_t peer) {
    dist::detail::end_process(
        text("a message to ", peers_->name(peer)),
        Unavailable(peer, peers_->host(peer), *peers_->lost(peer),
                    "See what that process does; a debugger that stops it makes the others believe it lost"),
        Watchdog::exit_lost, [] {});
  }
  static constexpr std::chrono::seconds after_silence{3};
  /// Finalising MPI would wait for them.
  void end_without_lost_ones() {
    const Visit visit{*this};
    for (std::size_t peer = 0; peer < peers_->size(); ++peer) {
      if (!peers_->lost(peer)) continue;
      say(text("this process ends with status ", Watchdog::exit_lost, ", without the others: ", *peers_->lost(peer)));
      std::fflush(nullptr);
      _exit(Watchdog::exit_lost);
    }
  }

  // ---- the end ----

  /// MPI_Finalize frees MPI_COMM_SELF first, and calls what is attached to it.
  void end_with_mpi() {
    int key = MPI_KEYVAL_INVALID;
    const auto at_finalize = [](MPI_Comm, int, void* engine, void*) noexcept -> int {
      static_cast<CallEngine*>(engine)->close();
      return MPI_SUCCESS;
    };
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr), "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, this), "MPI_Comm_set_attr");
  }
  /// Lets the last packets leave, and ends what goes on.
  void close() noexcept {
    const Clock::time_point end = Clock::now() + std::chrono::seconds{1};
    for (bool empty = false; !empty && Clock::now() < end;) {
      const Visit visit{*this};
      static_cast<void>(advance());
      empty = postbox_->is_empty();
    }
    {
      const Visit visit{*this};
      for (std::size_t peer = 0; peer < peers_->size(); ++peer) lose(peer, "MPI was finalised in this process", true);
      closed_ = true;
      wake_.notify_all();
    }
    thread_.join();
  }

  std::unique_ptr<Environment> environment_;
  std::optional<Farewell> farewell_;  ///< where this library has started MPI
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<Peers> peers_;
  std::chrono::microseconds poll_time_{0};

  std::mutex mutex_;
  dist::detail::ConditionVariable wake_;
  std::vector<dist::detail::KeptFunction<void>> after_;
  std::optional<Postbox> postbox_;
  std::optional<CallTransfers> transfers_;
  std::vector<std::pair<std::size_t, std::string>> to_lose_;
  std::uint64_t last_call_ = 0;
  std::map<std::uint64_t, std::shared_ptr<OpenCall>> of_clients_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::shared_ptr<OpenCall>> of_servers_;
  std::map<std::uint16_t, Listener*> listeners_;
  std::vector<std::weak_ptr<ServerWatch>> watches_;
  std::size_t pollers_ = 0;
  bool asleep_ = false;  ///< the thread
  bool closed_ = false;  ///< MPI is about to be finalised
  Clock::time_point busy_since_ = Clock::now(), looked_{}, checked_ = Clock::now();
  std::thread thread_;
};

}  // namespace dist::mpi::detail
