#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/coordinator/per_worker.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>

namespace dist {

/// The RPC methods of a worker, which run the functions that coordinators schedule. Runs only functions that this
/// program schedules somewhere, and rejects invalid arguments.
///
///   dist::WorkerService<dist::Grpc> worker;
///   dist::Grpc::Server server{endpoint, options, worker.methods()};
///
/// It must outlive the server. Functions run in threads of the server, one at a time for each coordinator. The server
/// needs one more thread for other requests.
template <rpc::Transport Transport>
class WorkerService {
 public:
  /// The transport's unanswered request.
  using Exchange = typename Transport::Exchange;

  /// `to_servers` are the options for the functions' calls to parameter servers.
  explicit WorkerService(rpc::ChannelOptions to_servers = {.secret = net::job_secret(), .tls = net::job_tls()});
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;
  ~WorkerService();

  /// The RPC methods for the server. Valid as long as this object.
  [[nodiscard]] std::vector<rpc::Method<Exchange>> methods();

  /// The number of coordinators that use this worker. Thread-safe.
  [[nodiscard]] std::size_t sessions() const {
    const std::lock_guard lock{mutex_};
    return sessions_.size();
  }

 private:
  using CallStatus = detail::CallStatus;

  struct Session : detail::WorkerSession {
    using detail::WorkerSession::WorkerSession;
    std::optional<Exchange> watch = {};  ///< ends with the coordinator
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    /// True if the coordinator has exited, or has not sent its watch call within 30 s.
    [[nodiscard]] bool is_lost() const {
      return watch ? watch->cancelled() : std::chrono::steady_clock::now() - begin > std::chrono::seconds{30};
    }
  };
  /// A reply of two pieces.
  struct Answer {
    std::byte ending;
    std::vector<std::byte> bytes;
  };

  [[nodiscard]] rpc::Method<Exchange> method(std::string_view name, void (WorkerService::*handle)(Exchange&)) {
    return {std::string{name}, [this, handle](Exchange& exchange) {
              try {
                (this->*handle)(exchange);
              } catch (const ArchiveError& error) {
                refuse(exchange, CallStatus::refused, {"", error.what()});
              }
            }};
  }

  [[gnu::cold]] void greet(Exchange& exchange) {
    ArchiveReader request{exchange.pieces(), "The greeting of a coordinator"};
    const bool same = request.get<std::string>() == binary_identity();
    detail::Handshake answer{binary_identity()};
    if (same) {
      const auto before = request.get<std::uint64_t>();
      auto session = std::make_shared<Session>(request.get<detail::WorkerIdentity>(), to_servers_);
      request.expect_end();
      answer.session = add(std::move(session), before);
    }
    exchange.reply(to_bytes(answer));
  }
  [[gnu::cold]] void watch(Exchange& exchange) {
    const auto number = from_bytes<std::uint64_t>(exchange.pieces(), "The watch request of a coordinator");
    const std::lock_guard lock{mutex_};
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) return exchange.reply({});
    if (!found->second->watch) found->second->watch.emplace(exchange.keep());
  }
  [[gnu::cold]] void make(Exchange& exchange) {
    ArchiveReader request{exchange.pieces(), "The request for a per-worker resource"};
    const std::shared_ptr<Session> session = find(request.get<std::uint64_t>());
    if (!session) return refuse(exchange, CallStatus::no_session, {});
    const auto id = request.get<std::uint64_t>();
    detail::ResourceMaker* const maker = FunctionTable<detail::ResourceMaker>::find(request.get<FunctionId>());
    session->keep(id, made(*session, *maker, request));
    answer(exchange, CallStatus::result, {});
  }
  void run(Exchange& exchange) {
    ArchiveReader request{exchange.pieces(), "A scheduled function"};
    const std::shared_ptr<Session> session = find(request.get<std::uint64_t>());
    if (!session) return refuse(exchange, CallStatus::no_session, {});
    const auto number = request.get<std::uint64_t>();
    const auto function = FunctionTable<Invocation<WorkerContext>>::find(request.get<FunctionId>());
    if (!session->begin_function())
      return refuse(exchange, CallStatus::refused,
                    {"", "another function of this coordinator is running on this worker"});
    const auto is_to_stop = [&] { return exchange.cancelled() || session->is_stopped(number); };
    detail::FunctionRun its{&*session, is_to_stop};
    WorkerContext worker{its};
    // After a request to stop that the function has seen, its result or exception is ignored.
    const auto has_stopped = [&] { return its.knows && session->is_stopped(number); };
    try {
      std::vector<std::byte> result = function(worker, request);
      session->end_function();
      if (has_stopped()) return refuse(exchange, CallStatus::stopped, {});
      answer(exchange, CallStatus::result, std::move(result));
    } catch (...) {
      session->end_function();
      if (has_stopped()) return refuse(exchange, CallStatus::stopped, {});
      refuse_with_exception(exchange, *session, its.in_function);
    }
  }
  [[gnu::cold]] void stop(Exchange& exchange) {
    ArchiveReader request{exchange.pieces(), "The stop request for a scheduled function"};
    const std::shared_ptr<Session> session = find(request.get<std::uint64_t>());
    const auto number = request.get<std::uint64_t>();
    request.expect_end();
    if (session) session->stop(number);
    exchange.reply({});
  }
  [[gnu::cold]] void leave(Exchange& exchange) {
    const auto number = from_bytes<std::uint64_t>(exchange.pieces(), "The leave request of a coordinator");
    std::vector<std::shared_ptr<Session>> ended;
    {
      const std::lock_guard lock{mutex_};
      end(number, ended);
    }
    exchange.reply({});
  }

  [[gnu::cold]] static void refuse_with_exception(Exchange& exchange, const Session& session, bool in_function) {
    const auto trouble = [](const rpc::Outcome& outcome) {
      return detail::RemoteFailure{outcome.thrown, outcome.why.substr(0, longest_text)};
    };
    try {
      throw;
    } catch (const detail::ResourceError& error) {
      return refuse(exchange, CallStatus::resource, trouble(error.outcome()));
    } catch (const ServerUnavailable& error) {
      refuse(exchange, in_function ? CallStatus::server_lost : CallStatus::thrown,
             {rpc::outcome_of_exception().thrown, error.what(), error.rank()});
    } catch (const RpcError& error) {
      const std::size_t server = session.server_at(error.peer());
      if (server < session.place().servers.size() && in_function) {
        const detail::RemoteFailure its{rpc::outcome_of_exception().thrown, error.why(), server};
        if (error.failure() == rpc::Failure::lost) return refuse(exchange, CallStatus::server_lost, its);
        if (error.failure() == rpc::Failure::deadline) return refuse(exchange, CallStatus::server_late, its);
        if (error.failure() == rpc::Failure::cancelled) return refuse(exchange, CallStatus::server_cancelled, its);
      }
      refuse(exchange, CallStatus::thrown, trouble(rpc::outcome_of_exception()));
    } catch (const ArchiveError&) {
      refuse(exchange, in_function ? CallStatus::thrown : CallStatus::refused, trouble(rpc::outcome_of_exception()));
    } catch (...) {
      refuse(exchange, CallStatus::thrown, trouble(rpc::outcome_of_exception()));
    }
  }
  static constexpr std::size_t longest_text = 65'536;

  [[gnu::cold]] static void refuse(Exchange& exchange, CallStatus ending, const detail::RemoteFailure& trouble) {
    answer(exchange, ending, to_bytes(trouble));
  }
  static void answer(Exchange& exchange, CallStatus ending, std::vector<std::byte> bytes) {
    const auto answer = std::make_shared<Answer>(Answer{static_cast<std::byte>(ending), std::move(bytes)});
    const rpc::Chunk pieces[] = {{&answer->ending, 1}, answer->bytes};
    exchange.reply(pieces, [answer] {});
  }

  [[nodiscard, gnu::cold]] static detail::WorkerResource made(Session& session, detail::ResourceMaker& maker,
                                                              ArchiveReader& request) {
    try {
      return maker(session, request);
    } catch (...) {
      return {nullptr, nullptr, rpc::outcome_of_exception()};
    }
  }

  [[nodiscard]] std::shared_ptr<Session> find(std::uint64_t number) const {
    const std::lock_guard lock{mutex_};
    const auto found = sessions_.find(number);
    return found == sessions_.end() ? nullptr : found->second;
  }
  /// Adds a session, and ends the previous one of the coordinator.
  [[nodiscard, gnu::cold]] std::uint64_t add(std::shared_ptr<Session> session, std::uint64_t before) {
    std::vector<std::shared_ptr<Session>> ended;
    const std::lock_guard lock{mutex_};
    end(before, ended);
    sessions_.emplace(++last_session_, std::move(session));
    changed_.notify_one();
    return last_session_;
  }
  /// Ends the sessions of lost coordinators, in a thread (spec L22).
  [[gnu::cold]] void end_lost_sessions() {
    detail::name_this_thread("dist sessions");
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !sessions_.empty(); });
      if (ending_) return;
      std::vector<std::uint64_t> lost;
      for (const auto& [number, session] : sessions_)
        if (session->is_lost()) lost.push_back(number);
      std::vector<std::shared_ptr<Session>> ended;
      for (const std::uint64_t number : lost) end(number, ended);
      lock.unlock();
      ended.clear();
      lock.lock();
      changed_.wait_for(lock, between_looks, [&] { return ending_; });
    }
  }
  static constexpr std::chrono::milliseconds between_looks{100};

  /// Requires `mutex_`. The caller must destroy `ended` without it, because resources may be slow to destroy. A running
  /// function keeps its session alive.
  [[gnu::cold]] void end(std::uint64_t number, std::vector<std::shared_ptr<Session>>& ended) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) return;
    found->second->end();
    if (found->second->watch) found->second->watch->reply({});
    ended.push_back(std::move(found->second));
    sessions_.erase(found);
  }

  const rpc::ChannelOptions to_servers_;
  mutable std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool ending_ = false;
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions_;
  /// Starts with the time, so that a restarted process at the same address does not repeat numbers.
  std::uint64_t last_session_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::thread thread_;
};

template <rpc::Transport Transport>
WorkerService<Transport>::WorkerService(rpc::ChannelOptions to_servers)
    : to_servers_(std::move(to_servers)), thread_([this] { end_lost_sessions(); }) {}

template <rpc::Transport Transport>
WorkerService<Transport>::~WorkerService() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

template <rpc::Transport Transport>
auto WorkerService<Transport>::methods() -> std::vector<rpc::Method<Exchange>> {
  return {method(detail::greet_method, &WorkerService::greet), method(detail::watch_method, &WorkerService::watch),
          method(detail::make_method, &WorkerService::make),   method(detail::run_method, &WorkerService::run),
          method(detail::stop_method, &WorkerService::stop),   method(detail::leave_method, &WorkerService::leave)};
}

}  // namespace dist
