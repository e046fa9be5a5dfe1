/// The coordinator's side of the lifelines (server/lifeline.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/signal_flag.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/coordinator_options.hpp>
#include <dist/server/error.hpp>
#include <dist/server/lifeline.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/serve.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/variable/partitioner.hpp>

namespace dist {

/// Options of a ParameterServer.
struct ParameterServerOptions {
  /// The number of shards of each variable (see Partitioner). Default: variables are not divided (spec J01).
  AnyPartitioner partitioner = {};
  /// Options of connections to servers and workers, such as the job's secret and certificates.
  rpc::ChannelOptions channel = {.secret = net::job_secret(), .tls = net::job_tls()};
  net::Milliseconds wait_for_servers{180'000};                  ///< for all parameter servers to connect (spec J02)
  net::Milliseconds patience = net::default_patience;           ///< before stderr lists the missing servers
  std::chrono::nanoseconds timeout = std::chrono::seconds{60};  ///< of a call to a server
  std::size_t attempts = 3;  ///< of a call, before the server is unavailable (spec L15)

  /// The use of memory of servers on the same machine, by this process and the workers. Default: `write` if all
  /// processes end together, according to the resolver's `ends_together`, or are threads of one process; otherwise
  /// `read`.
  std::optional<server::SharedMemoryAccess> shared_memory = {};
  /// The size at which a bucket is closed, in bytes. The tensors of a variable with a layout, such as the parameters of
  /// a network, are transferred in buckets, the last tensors first: workers wait for parameters layer by layer, and
  /// send gradients when they are ready. 0: one bucket. With the default, small networks need one message, and
  /// transfers of large layers overlap with computation.
  std::size_t bucket_bytes = std::size_t{1} << 20;
  /// Shards reject gradients if they have applied more updates than this since the gradient's parameters were pulled.
  /// Rejected gradients are counted (dist::staleness), and the step counts as finished.
  std::uint64_t max_staleness = server::any_staleness;
  CoordinatorOptions coordinator = {};  ///< also in Model::fit
};

namespace server {

struct SessionOptions : ParameterServerOptions {
  /// True if this coordinator takes over processes of a lost coordinator (ServeOptions::keep_alive), with their
  /// variables. Otherwise, a parameter server with such variables is an error.
  bool takes_over = false;
  /// Called once, in a thread of the session, when a parameter server is lost.
  dist::detail::UniqueFunction<void, const ServerUnavailable&> on_loss = {};
};

/// The connections of a coordinator to its processes. Each side notices when the other exits. Thread-safe.
///
/// The constructor waits for all parameter servers. Workers may connect later, disconnect and reconnect. The destructor
/// tells all processes to exit, with status 0 or the status of a PreemptionHandler that has ended the program. If an
/// exception destroys the session, it does not, because another coordinator may take over the variables.
template <class T>
class Session {
  static_assert(dist::detail::satisfied<rpc::Transport<T>>,
                "a session takes a transport as its template argument, such as dist::Local or dist::Grpc");

 public:
  /// Throws ServerUnavailable if a parameter server does not connect in time, or holds variables of a lost coordinator;
  /// InvalidArgument if a process has another program or task, or is a thread that has ended with its coordinator;
  /// RpcError if an address belongs to another job.
  explicit Session(const std::vector<Served>& processes, SessionOptions options = {})
      : options_(std::move(options)), coordinator_(net::random_number()) {
    ReportSignal::answer_to_the_end();
    for (const Served& process : processes) add(process);
    thread_ = std::thread{[this] { run(); }};
    try {
      await_servers();
    } catch (...) {
      end(false);
      throw;
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { end(std::uncaught_exceptions() == exceptions_); }

  void add(const Served& process) {
    const std::lock_guard lock{mutex_};
    links_.push_back(std::make_unique<Link>(process, options_.channel, dial_message(process.task)));
  }

  /// Throws ServerUnavailable if a parameter server or its variables are lost, and the error of a worker of another
  /// job.
  void check() const {
    const std::lock_guard lock{mutex_};
    if (failure_) std::rethrow_exception(failure_);
  }
  /// The incarnation of a task's process, which changes when it restarts; 0 if it has not connected yet.
  [[nodiscard]] std::uint64_t incarnation(Task task) const {
    const std::lock_guard lock{mutex_};
    for (const auto& link : links_)
      if (link->task == task) return link->incarnation;
    return 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Call = typename T::Call;

  /// The connection to one process, with one call at a time: a greeting or the lifeline.
  struct Link {
    Link(const Served& process, const rpc::ChannelOptions& channel_options, std::vector<std::byte> its_greeting)
        : task(process.task),
          address(to_string(process.endpoint)),
          greeting(std::move(its_greeting)),
          channel(process.endpoint, channel_options) {}

    [[nodiscard]] bool is_server() const { return task.type == TaskType::parameter_server; }
    [[nodiscard]] std::string name() const { return concat(to_string(task), " at ", address); }

    const Task task;
    const std::string address;
    const std::vector<std::byte> greeting;
    typename T::Channel channel;
    std::optional<Call> call;
    bool attending = false;  ///< `call` is the lifeline
    bool ended = false;      ///< failed permanently
    std::uint64_t incarnation = 0;
    std::size_t failures = 0;  ///< failed greetings since the last success
    bool silent = false;       ///< lost by silence instead of a closed connection
    Clock::time_point lost_since{};
    Clock::time_point not_before{};
    std::string why = "no process has answered there";
  };

  static constexpr net::Milliseconds between_looks{20};
  /// Time limit of a greeting to a process that has not connected yet, or of a worker.
  static constexpr net::Milliseconds greeting_timeout{1000};
  /// Time limit of a greeting to a server lost by silence; for one with a closed connection, it is the maximum silence.
  static constexpr net::Milliseconds last_greeting_timeout{250};
  static constexpr std::chrono::seconds longest_wait_for_greetings{1};

  [[nodiscard]] std::vector<std::byte> dial_message(Task task) const {
    return ArchiveWriter{}
        .put(binary_identity())
        .put(detail::HandshakeRequest{coordinator_, to_string(task), options_.takes_over})
        .take();
  }

  [[gnu::cold]] void run() {
    dist::detail::name_this_thread("dist session");
    std::unique_lock lock{mutex_};
    while (!stopping_) {
      std::optional<ServerUnavailable> lost;
      for (const auto& link : links_)
        if (std::optional<ServerUnavailable> its = advance(*link); its && !lost) lost = std::move(its);
      changed_.notify_all();
      if (lost && options_.on_loss) {
        lock.unlock();
        options_.on_loss(*lost);
        lock.lock();
      }
      changed_.wait_for(lock, between_looks, [&] { return stopping_; });
    }
  }

  /// Takes the next step of a link, and returns the error if its server is lost. Requires `mutex_`.
  [[nodiscard, gnu::cold]] std::optional<ServerUnavailable> advance(Link& link) {
    if (link.ended) return std::nullopt;
    std::optional<ServerUnavailable> lost;
    if (link.call) {
      if (!link.call->is_done()) return std::nullopt;
      const std::optional<typename T::Reply> reply = reply_of(link);
      link.call.reset();
      if (std::exchange(link.attending, false)) {
        if (reply) link.why = "it has ended";
        link.lost_since = Clock::now();
      } else if (reply) {
        lost = take(link, *reply);
      } else if (!link.ended) {
        ++link.failures;
        link.not_before = Clock::now() + options_.channel.reconnect;
        if (link.is_server() && link.incarnation != 0 && link.failures >= options_.attempts)
          lost = lose(link, "is unavailable", concat(link.why, ", ", link.failures, " times"),
                      "Restart the job from its last checkpoint");
      }
    }
    if (!link.call && !link.ended && Clock::now() >= link.not_before) {
      const bool was_there = link.is_server() && link.incarnation != 0;
      const bool was_silent = link.silent || Clock::now() - link.lost_since >= options_.channel.silence;
      const auto timeout = !was_there   ? greeting_timeout
                           : was_silent ? last_greeting_timeout
                                        : options_.channel.silence;
      start(link, detail::greet_method, link.greeting, {timeout, !was_there});
    }
    return lost;
  }
  [[gnu::cold]] void start(Link& link, std::string_view method, const std::vector<std::byte>& bytes,
                           const rpc::CallOptions& options) {
    const rpc::Chunk piece = bytes;
    link.call.emplace(link.channel.start(method, {&piece, 1}, options));
  }
  /// Returns nothing if the call failed, and sets `link.why`.
  [[nodiscard, gnu::cold]] std::optional<typename T::Reply> reply_of(Link& link) {
    try {
      return link.call->reply();
    } catch (const RpcError& error) {
      link.why = error.why();
      link.silent = link.silent || error.was_silent();
      const bool may_come = rpc::is_lost(error) || error.failure() == rpc::Failure::deadline;
      if (!may_come && !link.attending) refuse(link, std::current_exception());
    }
    return std::nullopt;
  }
  [[nodiscard, gnu::cold]] std::optional<ServerUnavailable> take(Link& link, const typename T::Reply& reply) {
    detail::HandshakeReply welcome;
    try {
      welcome = from_bytes<detail::HandshakeReply>(reply.pieces(), "The answer to a coordinator");
    } catch (const ArchiveError&) {
      refuse(link, std::current_exception());
      return std::nullopt;
    }
    switch (welcome.verdict) {
      case detail::HandshakeStatus::welcome:
        link.failures = 0;
        link.silent = false;
        if (link.is_server() && link.incarnation != 0 && link.incarnation != welcome.incarnation)
          return lose(link, "has lost its variables: restore a checkpoint", "it was started again",
                      "Restart the job from its last checkpoint");
        link.incarnation = welcome.incarnation;
        link.attending = true;
        start(link, detail::attend_method, number_, {});
        break;
      case detail::HandshakeStatus::busy:
        wait(link, "it serves another coordinator");
        break;
      case detail::HandshakeStatus::held:
        if (!link.is_server())
          wait(link, "it waits for a coordinator that it has lost");
        else
          refuse(link, std::make_exception_ptr(ServerUnavailable(
                           link.task.index, link.address, "holds the variables of another coordinator",
                           "it has lost that coordinator, and waits for its return",
                           "Start the whole job again, or take over the variables (SessionOptions::takes_over)")));
        break;
      case detail::HandshakeStatus::ended:
        if constexpr (rpc::WithinProcess<T>)
          refuse(link, std::make_exception_ptr(InvalidArgument(
                           concat(link.name(), " has ended"), "the coordinator that it served has finished its work",
                           "Create a new job for another coordinator, such as a dist::LocalJob")));
        else
          wait(link, "its coordinator has finished its work, and it is exiting");
        break;
      case detail::HandshakeStatus::other_program:
        refuse(link, std::make_exception_ptr(
                         InvalidArgument(concat(link.name(), " runs a different program from its coordinator"),
                                         concat("its build is ", quoted(welcome.program),
                                                ", the coordinator's build is ", quoted(binary_identity())),
                                         "Start all processes of the job from one build of the program")));
        break;
      default:
        refuse(link,
               std::make_exception_ptr(InvalidArgument(
                   concat("The process at ", link.address, " is not ", to_string(link.task)),
                   concat("it is ", quoted(welcome.task)), "Give all processes of the job the same list of tasks")));
    }
    return std::nullopt;
  }
  [[gnu::cold]] void wait(Link& link, std::string_view why) {
    link.why = why;
    link.not_before = Clock::now() + options_.channel.reconnect;
  }
  [[nodiscard, gnu::cold]] ServerUnavailable lose(Link& link, std::string_view happened, std::string_view why,
                                                  std::string_view suggestion) {
    ServerUnavailable error{link.task.index, link.address, happened, why, suggestion};
    refuse(link, std::make_exception_ptr(error));
    if (dist::detail::warnings_are_wanted()) log_line(error.what());
    return error;
  }
  [[gnu::cold]] void refuse(Link& link, std::exception_ptr error) {
    link.ended = true;
    if (!failure_) failure_ = std::move(error);
  }

  void await_servers() {
    const net::Deadline deadline = net::Deadline::in(options_.wait_for_servers);
    const net::Deadline patience = net::Deadline::in(options_.patience);
    bool said = !dist::detail::warnings_are_wanted();
    SlowWait wait;
    std::unique_lock lock{mutex_};
    for (;;) {
      if (failure_) std::rethrow_exception(failure_);
      const Link* first = nullptr;
      std::string missing;
      for (const auto& link : links_) {
        if (!link->is_server() || link->incarnation != 0) continue;
        if (first == nullptr) first = &*link;
        missing += concat(missing.empty() ? "" : ", ", link->name(), ": ", link->why);
      }
      if (first == nullptr) return;
      if (deadline.passed())
        throw ServerUnavailable(first->task.index, first->address,
                                concat("did not become available within ", options_.wait_for_servers), missing,
                                "Start it, or wait longer for it (wait_for_servers)");
      if (!said && patience.passed()) {
        said = true;
        log_line(concat("after ", options_.patience, ", the coordinator is still waiting for ", missing));
      }
      wait.note([&] { return concat("for ", missing); });
      changed_.wait_for(lock, std::min(deadline.left(), between_looks));
    }
  }

  /// Ends all lifelines and, if `done`, all processes. The time limit is the maximum silence, because a process that
  /// misses this considers the coordinator lost.
  void end(bool done) {
    {
      std::unique_lock lock{mutex_};
      // A process started since its last failed greeting would wait for this coordinator.
      for (const auto& link : links_) {
        if (link->attending || link->ended) continue;
        link->failures = 0;
        link->not_before = {};
      }
      changed_.wait_for(lock, longest_wait_for_greetings, [&] { return all_are_greeted(); });
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    std::vector<Call> farewells;
    const std::vector<std::byte> farewell = to_bytes(detail::Leave{coordinator_, dist::detail::SignalFlag::obeyed()});
    const rpc::Chunk piece = farewell;
    for (const auto& link : links_) {
      if (!link->call) continue;
      // A cancelled greeting may have arrived at a process, which would then wait for this coordinator.
      const net::Milliseconds longest = link->attending ? options_.channel.silence : greeting_timeout;
      if (!link->attending) {
        link->call->cancel();
        await(*link->call);
      }
      if (done) farewells.push_back(link->channel.start(detail::leave_method, {&piece, 1}, {longest, false}));
    }
    for (Call& call : farewells) await(call);
    for (const auto& link : links_) {
      if (!link->attending) continue;
      link->call->cancel();
      await(*link->call);
    }
  }
  /// True if each reachable process has been greeted. Requires `mutex_`.
  [[nodiscard, gnu::cold]] bool all_are_greeted() const {
    return std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link->attending || link->ended || link->failures > 0; });
  }
  [[gnu::cold]] static void await(Call& call) {
    try {
      call.wait();
    } catch (const RpcError&) {  // the process has exited, or the call was cancelled
    }
  }

  const SessionOptions options_;
  const std::uint64_t coordinator_;
  const std::vector<std::byte> number_ = to_bytes(coordinator_);
  const int exceptions_ = std::uncaught_exceptions();
  mutable std::mutex mutex_;
  dist::detail::ConditionVariable changed_;
  std::vector<std::unique_ptr<Link>> links_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace server

}  // namespace dist
