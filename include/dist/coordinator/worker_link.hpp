#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/coordinator/closure_queue.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/per_worker.hpp>
#include <dist/coordinator/remote_value.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>

namespace dist {

/// A coordinator's connection to one worker, with a thread that greets it, makes it create its resources, and sends it
/// one function after another. The thread reconnects to a lost worker, while others run its functions.
template <rpc::Transport Transport>
class WorkerLink : public std::enable_shared_from_this<WorkerLink<Transport>> {
 public:
  /// The clock of deadlines.
  using Clock = std::chrono::steady_clock;
  /// The type of timeouts.
  using Duration = std::chrono::nanoseconds;

  /// A link to worker `index` at `worker`. `start` connects it.
  [[gnu::cold]] WorkerLink(std::shared_ptr<detail::CoordinatorState> state, std::size_t index,
                           const net::Endpoint& worker)
      : state_(std::move(state)), index_(index), address_(to_string(worker)), channel_(worker, state_->channel) {}
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  /// Starts the thread, which connects after `delay`. Call once.
  [[gnu::cold]] void start(Duration delay) {
    thread_ = std::thread{[self = this->shared_from_this(), delay] { self->run(delay); }};
  }
  /// Makes the thread check for new resources. The caller must wake the queue afterwards.
  void wake() { wake_requested_.store(true); }

  /// Stops the worker and the thread, without waiting. Call once, after `start`.
  [[gnu::cold]] void stop() {
    {
      const std::lock_guard lock{mutex_};
      stopping_ = true;
      if (current_) current_->cancel();
    }
    changed_.notify_all();
    leave();
  }
  /// Asks the worker's function to stop, if it was taken in an earlier `round` of the queue.
  void stop_function(std::uint64_t round) {
    const std::lock_guard lock{mutex_};
    if (!running_result_ || running_round_ >= round || stopping_run_) return;
    stop_message_ = ArchiveWriter{}.put(session_).put(run_).take();
    const rpc::Chunk piece = stop_message_;
    stopping_run_.emplace(channel_.start(detail::stop_method, {&piece, 1}, {longest_farewell, false}));
  }
  /// Waits after `stop` for the thread. At `until`, detaches it, because its function in this process does not stop,
  /// and aborts the result.
  [[gnu::cold]] void join(Clock::time_point until) {
    {
      std::unique_lock lock{mutex_};
      if (!changed_.wait_until(lock, until, [&] { return ended_; })) {
        if (running_result_) ClosureQueue::abort_result(*running_result_);
        thread_.detach();
      }
    }
    if (!thread_.joinable()) {
      if (detail::warnings_are_wanted())
        log_line(concat("worker ", index_, " at ", address_,
                        " did not end its function after a stop request, and its thread was detached: a long-running "
                        "function should check stop_requested()"));
      return;
    }
    thread_.join();
    if (leaving_) await(*leaving_);
  }

  /// Adds the link's counts and durations. Thread-safe.
  [[gnu::cold]] void add_to(CoordinatorMetrics& metrics) const {
    const std::lock_guard lock{mutex_};
    metrics.put_back += done_.put_back;
    metrics.lost += done_.lost;
    metrics.queue_wait.add(done_.queue_wait);
    metrics.execution.add(done_.execution);
    metrics.recovery.add(done_.recovery);
  }
  /// Describes the worker: "worker 1 at 10.0.0.2:2222 runs main()::<lambda(…)> for 12.5 s"
  [[nodiscard, gnu::cold]] std::string describe() const {
    const std::lock_guard lock{mutex_};
    const std::string worker = concat("worker ", index_, " at ", address_);
    if (!running_.empty()) return concat(worker, " has run ", running_, " for ", Clock::now() - running_since_);
    if (session_ != 0) return concat(worker, " waits for functions");
    return concat(worker, told_ || done_.lost > 0 ? " has been lost for " : " has not connected for ",
                  Clock::now() - lost_since_, " (", why_lost_, ")");
  }

 private:
  using Call = typename Transport::Call;
  using Reply = typename Transport::Reply;
  using CallStatus = detail::CallStatus;

  /// Bounds of the time limit of a greeting, which otherwise is `recovery_timeout`.
  static constexpr std::chrono::milliseconds shortest_greeting{50}, longest_greeting{1000};
  /// The pause after a greeting that failed at once, and after the loss of an idle worker.
  static constexpr std::chrono::milliseconds between_greetings{50};
  /// The pause after a reply that is not from a worker of this job.
  static constexpr std::chrono::milliseconds between_refusals{500};
  /// The time after which an error that blocks all work is reported again.
  static constexpr std::chrono::seconds between_complaints{10};
  /// The pause before a function that found a parameter server unavailable runs again.
  static constexpr std::chrono::milliseconds before_server_again{50};
  /// The interval of checks of an idle worker.
  static constexpr std::chrono::milliseconds between_looks{250};
  static constexpr std::chrono::seconds longest_farewell{1};

  void run(Duration delay) {
    detail::name_this_thread(concat("dist worker ", index_));
    pause(delay);
    {
      const std::lock_guard lock{mutex_};
      lost_since_ = Clock::now();
    }
    while (!is_stopping()) {
      if (session_ == 0 && !greet()) continue;
      if (watch_has_ended() || !make_resources()) continue;
      if (auto closure = state_->queue.take(index_, &wake_requested_, Clock::now() + between_looks))
        execute(std::move(*closure));
    }
    leave();  // for a session that began during `stop`
    if (session_ != 0) --state_->connected;
    {
      const std::lock_guard lock{mutex_};
      ended_ = true;
    }
    changed_.notify_all();
  }

  /// Throws RpcError.
  Reply call(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options) {
    Call call = channel_.start(method, pieces, options);
    {
      const std::lock_guard lock{mutex_};
      current_ = &call;
      if (stopping_) call.cancel();
    }
    std::exception_ptr failure;
    try {
      call.wait();
    } catch (...) {
      failure = std::current_exception();
    }
    std::optional<Call> stopping_run;
    {
      const std::lock_guard lock{mutex_};
      current_ = nullptr;
      running_ = {};
      running_result_ = nullptr;
      stopping_run.swap(stopping_run_);
    }
    if (stopping_run) await(*stopping_run);  // it borrows `stop_message_`
    if (failure) std::rethrow_exception(failure);
    return call.reply();
  }
  [[gnu::cold]] static void await(Call& call) {
    try {
      call.wait();
    } catch (const RpcError&) {  // cancelled, or the worker has exited
    }
  }

  // ---- sessions ----

  /// Begins a session. Returns false after a pause if the worker does not reply correctly.
  [[nodiscard, gnu::cold]] bool greet() {
    std::vector<std::string> servers;
    for (const net::Endpoint& server : state_->servers) servers.push_back(to_string(server));
    const detail::WorkerIdentity place{index_, state_->workers(), state_->replicas_in_sync, std::move(servers),
                                       state_->worker_options};
    const std::vector<std::byte> greeting =
        ArchiveWriter{}.put(binary_identity()).put(session_before_).put(place).take();
    const rpc::Chunk piece = greeting;
    std::exception_ptr refusal;
    std::string why;
    try {
      const Reply reply = call(detail::greet_method, {&piece, 1}, {greeting_timeout(), true});
      const auto answer = from_bytes<detail::Handshake>(reply.pieces(), "The greeting of a worker");
      if (answer.program != binary_identity())
        throw InvalidArgument(
            concat("Worker ", index_, " at ", address_, " runs a different program from its coordinator"),
            concat("its build is ", quoted(answer.program), ", the coordinator's build is ", quoted(binary_identity())),
            "Start all processes of the job from one build of the program");
      begin_session(answer.session);
      return true;
    } catch (const RpcError& error) {
      if (is_stopping()) return false;
      if (error.failure() == rpc::Failure::lost || error.failure() == rpc::Failure::deadline) {
        miss(error.why());
        pause(error.failure() == rpc::Failure::lost ? between_greetings : Duration{0});
        return false;
      }
      refusal = std::current_exception();
      why = error.what();
    } catch (const Error& error) {  // another program, or invalid bytes
      refusal = std::current_exception();
      why = error.what();
    }
    complain(std::move(refusal), why);
    pause(between_refusals);
    return false;
  }
  [[nodiscard, gnu::cold]] Duration greeting_timeout() const {
    return std::clamp<Duration>(state_->options.recovery_timeout, shortest_greeting, longest_greeting);
  }
  [[gnu::cold]] void begin_session(std::uint64_t session) {
    Duration away{0};
    bool again = false;
    {
      const std::lock_guard lock{mutex_};
      session_ = session_before_ = session;
      away = Clock::now() - lost_since_;
      again = done_.lost > 0;
      if (again) done_.recovery.add(away);
      told_ = false;
    }
    ++state_->connected;
    waited_for_ = false;
    if (again && detail::warnings_are_wanted())
      log_line(concat("worker ", index_, " at ", address_, " is back after ", away));
    made_ = 0;
    watch();
  }
  /// Starts a pending call, so that each side notices the end of the other.
  [[gnu::cold]] void watch() {
    if (watching_) {
      watching_->cancel();
      await(*watching_);
    }
    watched_ = to_bytes(session_);
    const rpc::Chunk piece = watched_;
    watching_.emplace(channel_.start(detail::watch_method, {&piece, 1}, {}));
  }
  /// True if the idle worker has exited, or its session has ended.
  [[nodiscard]] bool watch_has_ended() {
    if (!watching_->is_done()) return false;
    try {
      watching_->wait();
      lose(anew);
    } catch (const RpcError& error) {
      lose(error.why());
    }
    pause(between_greetings);
    return true;
  }
  /// Ends the session on the worker, in the first call during a session.
  void leave() {
    {
      const std::lock_guard lock{mutex_};
      if (session_ == 0 || !farewell_.empty()) return;
      farewell_ = to_bytes(session_);
    }
    const rpc::Chunk piece = farewell_;
    leaving_.emplace(channel_.start(detail::leave_method, {&piece, 1}, {longest_farewell, false}));
  }

  /// Ends a lost session. The caller must put back the worker's function.
  [[gnu::cold]] void lose(std::string_view why) {
    {
      const std::lock_guard lock{mutex_};
      if (stopping_) return;
      session_ = 0;
      lost_since_ = Clock::now();
      why_lost_ = why;
      ++done_.lost;
    }
    --state_->connected;
    if (detail::warnings_are_wanted())
      log_line(concat("worker ", index_, " at ", address_, " is lost (", why,
                      "); other workers run its functions, and the coordinator tries to reconnect for ",
                      state_->options.recovery_timeout));
  }
  [[gnu::cold]] void miss(std::string_view why) {
    Duration away{0};
    {
      const std::lock_guard lock{mutex_};
      why_lost_ = why;
      away = Clock::now() - lost_since_;
    }
    if (!waited_for_ && away > net::default_patience && detail::warnings_are_wanted()) {
      waited_for_ = true;
      log_line(concat("the coordinator is still waiting for worker ", index_, " at ", address_, " after ", away, " (",
                      why, ")"));
    }
    if (away < state_->options.recovery_timeout) return;
    complain(std::make_exception_ptr(Unavailable(index_, address_,
                                                 concat("it did not ", done_.lost > 0 ? "reconnect " : "connect ",
                                                        "within ", state_->options.recovery_timeout, ": ", why),
                                                 "Check what happened to it. The coordinator keeps trying to connect "
                                                 "to it, and the other workers continue without it")),
             why);
  }
  /// Reports an unusable worker: once, or repeatedly if no other worker is connected, because new functions would wait
  /// forever.
  [[gnu::cold]] void complain(std::exception_ptr error, std::string_view why) {
    {
      const std::lock_guard lock{mutex_};
      why_lost_ = why;
      if (told_ && (state_->connected > 0 || Clock::now() - told_at_ < between_complaints)) return;
      told_ = true;
      told_at_ = Clock::now();
    }
    state_->queue.fail(std::move(error));
  }

  // ---- functions ----

  /// The worker's activity until the end of the next call.
  void begin(std::string_view what, std::shared_ptr<detail::RemoteResult> result, std::uint64_t round = 0) {
    const std::lock_guard lock{mutex_};
    ++run_;
    running_round_ = round;
    running_ = what;
    running_since_ = Clock::now();
    running_result_ = std::move(result);
  }

  /// Makes the worker create its missing resources (spec L09, L10). Returns false if the worker is lost.
  [[nodiscard]] bool make_resources() {
    wake_requested_ = false;
    for (auto message = state_->resource(made_); message; message = state_->resource(made_)) {
      const std::vector<std::byte> head = ArchiveWriter{}.put(session_).put(static_cast<std::uint64_t>(made_)).take();
      const rpc::Chunk pieces[] = {head, *message};
      begin("a function that makes a per-worker resource", nullptr);
      try {
        const Reply reply = call(detail::make_method, pieces, {});
        ArchiveReader reader{reply.pieces(), "The reply of a worker"};
        if (const CallStatus ending = reader.get<CallStatus>(); ending != CallStatus::result) {
          const std::string why =
              ending == CallStatus::no_session ? std::string{anew} : reader.get<detail::RemoteFailure>().why;
          if (ending == CallStatus::refused)
            state_->queue.fail(
                std::make_exception_ptr(RemoteError(index_, address_, "a per-worker resource", "", why)));
          lose(why);
          return false;
        }
        ++made_;
      } catch (const RpcError& error) {
        if (is_stopping()) return false;
        lose(error.what());
        return false;
      } catch (const Error& error) {
        if (!is_stopping()) lose(error.what());
        return false;
      }
    }
    return true;
  }

  void execute(Closure closure) {
    const Clock::time_point start = Clock::now();
    begin(closure.function, closure.result, closure.round);
    stop_function(state_->queue.rounds());  // for an error since it was taken
    {
      const std::lock_guard lock{mutex_};
      done_.queue_wait.add(start - closure.since);
    }
    const std::vector<std::byte> head = ArchiveWriter{}.put(session_).put(run_).take();
    const rpc::Chunk pieces[] = {head, closure.message};
    std::exception_ptr failure;
    try {
      const Reply reply = call(detail::run_method, pieces, {state_->options.function_timeout, false});
      take_reply(std::move(closure), reply, start);
    } catch (const RpcError& error) {
      take_failure(std::move(closure), error);
    } catch (...) {  // the reply is invalid, or memory is exhausted
      failure = std::current_exception();
    }
    if (failure) state_->queue.fail(closure, std::move(failure));
  }
  /// Throws ArchiveError.
  void take_reply(Closure&& closure, const Reply& reply, Clock::time_point start) {
    ArchiveReader reader{reply.pieces(), "The reply of a worker"};
    const auto ending = reader.get<CallStatus>();
    if (ending == CallStatus::result) {
      std::vector<std::byte> result(static_cast<std::size_t>(reader.left()));
      reader.get_bytes(result);
      {
        const std::lock_guard lock{mutex_};
        done_.execution.add(Clock::now() - start);
      }
      return state_->queue.finish(closure, std::move(result));
    }
    const auto trouble = reader.get<detail::RemoteFailure>();
    reader.expect_end();
    const auto fail = [&](std::string_view function, std::string_view thrown) {
      state_->queue.fail(closure,
                         std::make_exception_ptr(RemoteError(index_, address_, function, thrown, trouble.why)));
    };
    switch (ending) {
      case CallStatus::server_lost:
        if (state_->failures.tolerates_server(static_cast<std::size_t>(trouble.server))) {
          put_back(std::move(closure));
          pause(before_server_again);
          return;
        }
        return state_->queue.fail(closure, std::make_exception_ptr(server_is_gone(trouble)));
      case CallStatus::server_late:
        if (state_->failures.tolerates_timeout()) return put_back(std::move(closure));
        return state_->queue.fail(
            closure, std::make_exception_ptr(DeadlineExceeded(
                         concat("A scheduled function waited too long for parameter server ", trouble.server),
                         trouble.why, "Give its calls a longer timeout, or see what keeps the server busy")));
      case CallStatus::server_cancelled:
        if (may_run_again(closure)) return put_back(std::move(closure));
        return fail(closure.function, trouble.thrown);
      case CallStatus::no_session:  // the function has not started
        lose(anew);
        return put_back(std::move(closure));
      case CallStatus::stopped:
        return state_->queue.cancel_stopped(closure);
      case CallStatus::resource:
        return fail("a function that makes a per-worker resource", trouble.thrown);
      default:
        return fail(closure.function, trouble.thrown);
    }
  }
  [[nodiscard, gnu::cold]] ServerUnavailable server_is_gone(const detail::RemoteFailure& trouble) const {
    const auto server = static_cast<std::size_t>(trouble.server);
    return {server, server < state_->servers.size() ? to_string(state_->servers[server]) : std::string{"?"}, "is lost",
            concat("functions found it lost ", state_->options.server_failures, " times, most recently on worker ",
                   index_, ": ", trouble.why),
            "Start the job again from a checkpoint: the variables of this server are lost"};
  }
  /// Handles a call with unknown outcome. The worker begins a new session.
  [[gnu::cold]] void take_failure(Closure&& closure, const RpcError& error) {
    if (is_stopping()) return state_->queue.abort(closure);
    const bool late = error.failure() == rpc::Failure::deadline;
    lose(late ? concat("it ran a function for more than ", state_->options.function_timeout) : error.why());
    if (late) {
      if (state_->failures.tolerates_timeout()) return put_back(std::move(closure));
      return state_->queue.fail(closure,
                                std::make_exception_ptr(DeadlineExceeded(
                                    concat("A scheduled function took too long on worker ", index_, " at ", address_),
                                    concat(closure.function, " ran for more than ", state_->options.function_timeout),
                                    "Give functions a longer function_timeout, or see what they wait for")));
    }
    if (error.failure() != rpc::Failure::lost && error.failure() != rpc::Failure::cancelled)
      return state_->queue.fail(closure,
                                std::make_exception_ptr(error));  // another job, or a rejected request
    if (may_run_again(closure)) return put_back(std::move(closure));
    state_->queue.fail(closure, std::make_exception_ptr(Unavailable(
                                    index_, address_,
                                    concat("workers that ran ", closure.function, " were lost ", closure.attempts,
                                           " times, most recently this worker: ", error.why()),
                                    "Check whether the function ends the process that runs it")));
  }
  /// True if a function without a result may run again (spec L14, L17).
  [[nodiscard]] bool may_run_again(const Closure& closure) const {
    return state_->options.most_attempts == 0 || closure.attempts < state_->options.most_attempts;
  }
  [[gnu::cold]] void put_back(Closure&& closure) {
    {
      const std::lock_guard lock{mutex_};
      ++done_.put_back;
    }
    state_->queue.put_back(std::move(closure));
  }

  // ---- time ----

  [[nodiscard]] bool is_stopping() const {
    const std::lock_guard lock{mutex_};
    return stopping_;
  }
  void pause(Duration duration) {
    if (duration.count() <= 0) return;
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, duration, [&] { return stopping_; });
  }

  /// The reason for a loss if the worker does not know its session.
  static constexpr std::string_view anew = "it has restarted";

  const std::shared_ptr<detail::CoordinatorState> state_;
  const std::size_t index_;
  const std::string address_;
  // Borrowed by calls of `channel_`, whose destructor waits for them.
  std::vector<std::byte> watched_, farewell_, stop_message_;
  typename Transport::Channel channel_;
  std::atomic<bool> wake_requested_{false};

  mutable std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool stopping_ = false;
  bool ended_ = false;  ///< the thread has ended
  Call* current_ = nullptr;
  std::uint64_t session_ = 0;  ///< 0: none; written only by the thread, which reads it without the lock
  std::string_view running_;   ///< current function; empty: none
  Clock::time_point running_since_;
  std::shared_ptr<detail::RemoteResult> running_result_;
  std::uint64_t running_round_ = 0;   ///< round of the queue
  std::uint64_t run_ = 0;             ///< number of function calls; written only by the thread
  std::optional<Call> stopping_run_;  ///< asks the worker to stop the function
  Clock::time_point lost_since_ = Clock::now();
  std::string why_lost_ = "no connection was attempted yet";
  bool told_ = false;  ///< `complain` has reported the worker since its loss
  Clock::time_point told_at_;
  CoordinatorMetrics done_;  ///< by this worker; counts of the whole coordinator stay 0

  // Used only by the thread:
  std::uint64_t session_before_ = 0;
  std::size_t made_ = 0;     ///< resources that the worker has created in this session
  bool waited_for_ = false;  ///< stderr reports the wait
  std::optional<Call> watching_;

  std::optional<Call> leaving_;  ///< of the first `leave`; read after the thread has ended
  std::thread thread_;
};

}  // namespace dist
