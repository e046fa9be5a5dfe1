#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/hosted_options.hpp>
#include <dist/cluster/mpi/launch_environment.hpp>
#include <dist/cluster/mpi/lost_peer.hpp>
#include <dist/cluster/mpi/node_server.hpp>
#include <dist/cluster/mpi/node_socket.hpp>
#include <dist/cluster/mpi/rendezvous.hpp>
#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/log.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/net/dialer.hpp>
#include <dist/net/listen.hpp>
#include <dist/net/socket_address.hpp>

namespace dist {

/// One MPI_COMM_WORLD of processes that were started by hand with the list of all: without mpirun, ssh or daemons.
/// Ranks on one node share memory.
///
/// The lowest rank of each node starts a server process at its address, to which the node's other ranks and the other
/// servers connect. The addresses of other ranks are unused.
///
///     HostedWorld world = HostedWorld::join({.tasks = tasks, .rank = rank});
///     MPI_Init_thread(...);
///     world.initialised();
///     ...
///     world.goodbye();
///     MPI_Finalize();
///
/// A rank that exits in any other way counts as lost. All others are notified over their lifelines, have
/// `HostedOptions::grace` to raise an error and exit, and are then killed.
///
/// Nothing is encrypted, so use a trusted network. With a secret, other processes cannot join.
class HostedWorld final : public detail::WorldHandle {
 public:
  /// Returns when all tasks have connected; call MPI_Init next. Forks, so call it before threads and CUDA. Throws
  /// InvalidArgument for an invalid list; RendezvousError if the address cannot be bound, lists differ, a rank connects
  /// twice or the secret is wrong; DeadlineExceeded naming missing tasks; OutOfMemory if a limit of the process is too
  /// low.
  [[nodiscard]] static HostedWorld join(const HostedOptions& options) {
    check(options);
    const NodeMap nodes{options.tasks};
    const std::size_t first = nodes.first(nodes.node_of(options.rank));
    detail::require_limits(options.tasks.size(), nodes.ranks(nodes.node_of(options.rank)).size());
    HostedWorld world{options.rank, options.tasks.size()};
    world.server_ = {first, options.tasks[first].host,
                     "the server process of its host, which it had started, has exited", false};
    const net::Deadline deadline = net::Deadline::in(options.deadline);
    if (options.rank == first) {
      io::Descriptor listening = net::listen_at(options.tasks[first], {.peers_elsewhere = nodes.nodes() > 1,
                                                                       .port_in_use = options.port_patience,
                                                                       .name_unknown = options.deadline,
                                                                       .patience = options.patience,
                                                                       .authenticated = !options.secret.empty()});
      world.await_start(
          net::Connection{start_server(options, std::move(listening), deadline), detail::longest_lifeline_frame},
          deadline, options);
      return world;
    }
    const net::Handshake hello{net::Handshake::Role::worker,
                               options.rank,
                               options.tasks.size(),
                               net::list_checksum(options.tasks, options.job),
                               net::host_name(),
                               net::machine_id()};
    do {
      net::Dialer dialer{options.tasks[first],
                         hello,
                         {options.secret, options.handshake, detail::longest_lifeline_frame, options.port_patience}};
      net::Connection server = dial(dialer, concat("Worker ", first, " at ", to_string(options.tasks[first])),
                                    options.deadline, deadline, options.patience);
      world.await_start(std::move(server), deadline, options);
    } while (!world.lifeline_);  // the server exited before all tasks had connected; another may replace it
    return world;
  }

  /// Takes over the world and the lifeline.
  HostedWorld(HostedWorld&&) = default;
  /// Takes over the world and the lifeline.
  HostedWorld& operator=(HostedWorld&&) = default;

  [[nodiscard]] int lifeline() const noexcept override { return lifeline_.get(); }
  [[nodiscard]] std::optional<LostPeer> lost_peer() const override { return read_lost_peer(lifeline_.get(), server_); }

  /// Call after MPI_Init. Restores the environment, and notifies the server. Throws RendezvousError if the MPI library
  /// does not use PMIx.
  void initialised() override {
    environment_.restore();
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (static_cast<std::size_t>(rank) != rank_ || static_cast<std::size_t>(size) != size_)
      throw RendezvousError(concat("MPI_COMM_WORLD is not the world of the ", size_, " tasks that joined"),
                            concat("worker ", rank_, " is its rank ", rank, " of ", size),
                            "Link Open MPI 4.1 or later, built with PMIx, or start the program with mpirun");
    send(detail::WorldFrame::initialised);
  }
  void goodbye() override { send(detail::WorldFrame::goodbye); }

  [[nodiscard]] pid_t server() const override { return server_process_.value().pid(); }
  void continue_server() noexcept override {
    if (server_process_ && server_process_->stopped()) server_process_->send(SIGCONT);
  }

 private:
  HostedWorld(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}

  void send(detail::WorldFrame frame) {
    std::vector<std::byte> bytes;
    net::append_frame(bytes, static_cast<std::uint16_t>(frame), {});
    static_cast<void>(::send(lifeline_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  /// Forks a process that serves this node, not as a child: its exit status need not be collected, and it outlives this
  /// process to report its exit. Returns the connection.
  [[nodiscard]] static io::Descriptor start_server(const HostedOptions& options, io::Descriptor listening,
                                                   net::Deadline deadline) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      throw RendezvousError("The server of this node cannot start", net::system_text(), "Check ulimit -n");
    io::Descriptor mine{ends[0]}, its{ends[1]};
    const pid_t between = fork();
    if (between == 0) {
      const pid_t server = fork();
      if (server != 0) _exit(server < 0 ? 1 : 0);
      serve(options, std::move(listening), std::move(its), deadline);
    }
    // unchanged if the program ignores SIGCHLD, so waitpid fails; the lifeline then reports failures
    int status = 0;
    while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    if (between < 0 || status != 0)
      throw RendezvousError("The server of this node cannot start", "no process could be created", "Check ulimit -u");
    return mine;
  }

  [[noreturn]] static void serve(const HostedOptions& options, io::Descriptor listening, io::Descriptor own,
                                 net::Deadline deadline) {
    setsid();
    // A signal to the whole job also reaches the server, which must outlive its ranks.
    for (const int ignored : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) signal(ignored, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    int status = 1;
    try {
      keep_only(listening, own);
      report_crashes(own.get());
      detail::leave_other_worlds();
      detail::require_home("/");
      detail::NodeServer server{options, std::move(listening), std::move(own), deadline};
      status = server.run();
    } catch (const std::exception& error) {
      log_line(error.what());
    }
    _exit(status);
  }

  /// Reports fatal signals of this process on stderr and in a frame on `lifeline`.
  static void report_crashes(int lifeline) {
    static constexpr int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    static int line = -1;
    static std::vector<std::byte> frames[std::size(signals)];  // a signal handler must not allocate
    line = lifeline;
    for (std::size_t i = 0; i < std::size(signals); ++i) {
      const detail::WorldFailure failure{
          detail::WorldFailure::Kind::rendezvous,
          {"The server process of this host crashed", concat("signal ", signals[i], ", ", strsignal(signals[i])),
           "Look for the cause on standard error; libpmix, which it runs, may be damaged or of the wrong version"}};
      frames[i].clear();
      net::append_frame(frames[i], static_cast<std::uint16_t>(detail::WorldFrame::failed), failure.record());
      signal(signals[i], [](int crash) {
        constexpr std::string_view message = "dist: a signal killed the server process of this host.\n";
        static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
        for (std::size_t each = 0; each < std::size(signals); ++each)
          if (signals[each] == crash) static_cast<void>(!::write(line, frames[each].data(), frames[each].size()));
        signal(crash, SIG_DFL);
        raise(crash);
      });
    }
  }

  /// Closes all other inherited descriptors, except stderr. Redirects standard input and output to /dev/null.
  static void keep_only(const io::Descriptor& listening, const io::Descriptor& own) {
    const int low = std::min(listening.get(), own.get());
    const int high = std::max(listening.get(), own.get());
    close_all(STDERR_FILENO + 1, low - 1);
    close_all(low + 1, high - 1);
    close_all(high + 1, std::numeric_limits<int>::max());
    const io::Descriptor nowhere{open("/dev/null", O_RDWR | O_CLOEXEC)};
    dup2(nowhere.get(), STDIN_FILENO);
    dup2(nowhere.get(), STDOUT_FILENO);
  }
  static void close_all(int first, int last) {
    if (first > last || close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0) == 0) return;
    const long most = std::min(sysconf(_SC_OPEN_MAX), 1L << 20);
    for (long each = first; each <= std::min<long>(last, most); ++each) close(static_cast<int>(each));
  }

  /// Waits for this rank's variables, and sets them. Leaves the lifeline empty if the server exited without a message.
  void await_start(net::Connection server, net::Deadline deadline, const HostedOptions& options) {
    const bool own = options.rank == server_.rank;
    const net::Deadline patience = net::Deadline::in(options.patience);
    bool said = own;  // its own server prints the same message
    missing_ = {};
    SlowWait slow;
    // The server has the same deadline, and knows the missing processes, so it reports first.
    deadline = deadline.later(net::Milliseconds{2000});
    for (;;) {
      const bool alive = server.receive();
      while (const std::optional<net::Frame> frame = server.next()) take(*frame);
      if (!environment_.empty() && server.received_all()) {
        lifeline_ = server.release();
        return;
      }
      if (!alive && own)
        throw RendezvousError("The server of this node has exited", "this process had started it",
                              "Read its output, and start the job again");
      if (!alive) return;
      slow.note([&] {
        return missing_.who.empty() ? concat("for the server at ", to_string(options.tasks[server_.rank]))
                                    : concat("for all tasks to join: ", missing_.who, " (", missing_.why, ")");
      });
      if (deadline.passed() && !missing_.who.empty())
        detail::WorldFailure{detail::WorldFailure::Kind::deadline, detail::late_refusal(missing_, options.deadline)}
            .raise();
      if (deadline.passed())
        throw DeadlineExceeded(concat("The server at ", to_string(options.tasks[server_.rank]),
                                      " did not respond within ", options.deadline),
                               "it is stopped or disconnected", "Start the job again");
      if (!said && patience.passed() && !missing_.who.empty()) {
        said = true;
        log_line(concat("worker ", rank_, " waits: ", missing_.who, " yet (", missing_.why, "); waiting up to ",
                        options.deadline));
      }
      pollfd entry = server.poll_entry();
      poll(&entry, 1, deadline.poll_timeout(net::Milliseconds{said ? 1000 : 100}));
    }
  }

  /// Handles a frame of the server. Throws the failure that the server reports.
  void take(const net::Frame& frame) {
    switch (static_cast<detail::WorldFrame>(frame.type)) {
      case detail::WorldFrame::environment: {
        const detail::NodeHandshake welcome = detail::NodeHandshake::from(frame.payload);
        for (const std::string& variable : welcome.variables) environment_.set(variable);
        server_process_.emplace(welcome.server);
        shown_ = detail::NodeSocket::show(welcome.door, rank_);
        break;
      }
      case detail::WorldFrame::waiting:
        missing_ = detail::MissingTasks::from(frame.payload);
        break;
      case detail::WorldFrame::failed:
        detail::WorldFailure::from(frame.payload).raise();
      case detail::WorldFrame::lost: {
        const LostPeer lost = detail::lost_from(frame.payload);
        throw Unavailable(lost.rank, lost.host, lost.why, "Start all workers again");
      }
      default:
        break;
    }
  }

  std::size_t rank_;
  std::size_t size_;
  io::Descriptor lifeline_;
  LostPeer server_;
  std::optional<detail::ProcessWatch> server_process_;
  io::Descriptor shown_;
  detail::MissingTasks missing_;  ///< latest report of the server
  detail::LaunchEnvironment environment_;
};

}  // namespace dist
