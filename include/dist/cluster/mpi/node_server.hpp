#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/hosted_options.hpp>
#include <dist/cluster/mpi/launch_environment.hpp>
#include <dist/cluster/mpi/lost_peer.hpp>
#include <dist/cluster/mpi/node_links.hpp>
#include <dist/cluster/mpi/node_socket.hpp>
#include <dist/cluster/mpi/pmix_server.hpp>
#include <dist/cluster/mpi/rendezvous.hpp>
#include <dist/cluster/mpi/session_folder.hpp>
#include <dist/comm/mpi/environment.hpp>  // connections_advice
#include <dist/core/log.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/handshake_server.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::detail {

/// The server process of one node of a hosted world. It collects the node's ranks, starts PMIx for them once all tasks
/// have connected, and forwards reports of lost processes. It exits after its ranks; after a loss, it kills the node's
/// remaining processes when the grace period ends.
class NodeServer {
 public:
  /// `listening` is bound to the address of task `options.rank`, the node's lowest, and `own` is the connection to it.
  /// All tasks must connect by `deadline`; by default, within `options.deadline` from now.
  NodeServer(const HostedOptions& options, io::Descriptor listening, io::Descriptor own,
             std::optional<net::Deadline> deadline = std::nullopt)
      : options_(options),
        gathered_by_(deadline),
        nodes_(options.tasks),
        node_(nodes_.node_of(options.rank)),
        interface_(net::interface_of(net::own_address(listening.get()))),
        reception_(std::move(listening), {options.secret, options.tasks.size(),
                                          net::list_checksum(options.tasks, options.job), options.handshake}),
        ranks_(nodes_.ranks(node_)),
        links_(nodes_.nodes(), options.silence),
        fences_(nodes_.nodes()) {
    ranks_.add(options.rank, net::Connection{std::move(own), longest_lifeline_frame});
  }

  /// Returns the exit status: 0 after an orderly exit.
  [[nodiscard]] int run() {
    try {
      const WorldInfo start = Rendezvous{options_, nodes_, reception_, ranks_, links_, gathered_by_}.run();
      return attend(start);
    } catch (const Abandoned&) {
    } catch (const WorldFailure& failure) {
      fail(failure);
    } catch (const std::exception& error) {
      fail({WorldFailure::Kind::rendezvous,
            {concat("The server of host '", options_.tasks[options_.rank].host, "' failed"), error.what(),
             "Start the job again"}});
    }
    return 1;
  }

 private:
  using Deadline = net::Deadline;
  using Milliseconds = net::Milliseconds;

  void fail(const WorldFailure& failure) {
    ranks_.send_all(WorldFrame::failed, failure.record());
    links_.send_all(WorldFrame::failed, failure.record());
    drain(Milliseconds{1000});
  }

  /// Waits until the system has accepted all data, and the node's ranks have disconnected.
  void drain(Milliseconds longest) {
    const Deadline deadline = Deadline::in(longest);
    while (!deadline.passed() && (!ranks_.sent() || !links_.sent() || ranks_.still_connected() > 0)) {
      std::vector<pollfd> entries;
      ranks_.add_entries(entries);
      links_.add_entries(entries);
      poll(entries.data(), entries.size(), deadline.poll_timeout(Milliseconds{50}));
      ranks_.advance([](std::size_t) {}, [](std::size_t, const std::string&) {});
      links_.advance([](std::size_t, const net::Frame&) {}, [](std::size_t, const std::string&) {});
    }
  }

  int attend(const WorldInfo& start) {
    SessionFolder directory{nodes_.ranks(node_).size()};
    PmixServer pmix{{start.name, start.node_names, nodes_, node_, directory.path(), options_.handshake}};
    const std::string door_path = directory.path() + "/door";
    NodeSocket door{door_path};
    for (const std::size_t rank : nodes_.ranks(node_)) {
      NodeHandshake welcome{getpid(), door_path, pmix.environment(rank)};
      add_launch_variables(welcome.variables, nodes_.ranks(node_).size(), nodes_.nodes() == 1, directory.path(),
                           interface_);
      ranks_.send(rank, WorldFrame::environment, welcome.record());
    }
    links_.heard_from_all();
    const Deadline initialised = Deadline::in(options_.deadline);
    while (!over()) {
      std::vector<pollfd> entries{{pmix.events(), POLLIN, 0}};
      reception_.add_entries(entries);
      ranks_.add_entries(entries);
      links_.add_entries(entries);
      door.add_entries(entries);
      poll(entries.data(), entries.size(), reception_.next().poll_timeout(Milliseconds{100}));
      door.advance();
      reception_.advance([](const net::Handshake& hello) { return refuse(hello); }, [](net::Accepted) {});
      while (std::optional<PmixEvent> event = pmix.next_event()) {
        on_pmix(*event);
        if (event->kind == PmixEvent::Kind::connected && ranks_.all_in_mpi()) pmix.refuse_connections();
      }
      ranks_.advance(
          [&](std::size_t rank) {
            tell({rank, host_of(rank), "it had finished its work", true});
          },
          [&](std::size_t rank, const std::string& why) { lose(rank, why); });
      links_.advance([&](std::size_t node, const net::Frame& frame) { on_link(node, frame); },
                     [&](std::size_t node, const std::string& why) { lose_node(node, why); });
      if (initialised.passed() && !lost_) require_initialised(door);
    }
    if (lost_) {
      pmix.abandon();
      return end_ranks(door);
    }
    std::this_thread::sleep_for(Milliseconds{300});  // for the replies to the last calls of the ranks
    return 0;
  }

  /// True if all work is done or the grace period is over.
  [[nodiscard]] bool over() {
    if (lost_) return lost_->passed() || (ranks_.still_connected() == 0 && links_.sent());
    if (!ranks_.all_done()) return false;
    if (!leaving_) {
      leaving_ = Deadline::in(Milliseconds{10'000});  // for the other nodes to finish, too
      if (node_ != 0) links_.send_all(WorldFrame::goodbye, {});
    }
    bool alone = links_.sent();
    for (std::size_t node = 0; node < nodes_.nodes(); ++node)
      alone = alone && (node_ != 0 || node == 0 || links_.said_goodbye(node));
    if (!alone && !leaving_->passed()) return false;
    if (node_ == 0) links_.send_all(WorldFrame::goodbye, {});
    return true;
  }

  /// Reports the rank for which others wait in MPI_Init: one that a signal has stopped, or that has not entered it;
  /// otherwise the first that has not returned.
  void require_initialised(NodeSocket& door) {
    const std::string within = concat(" within ", options_.deadline);
    for (const std::size_t rank : nodes_.ranks(node_))
      if (!ranks_.initialised(rank) && door.is_stopped(rank))
        return lose(rank, concat("a signal has stopped it, and it has not returned from MPI_Init", within));
    for (const std::size_t rank : nodes_.ranks(node_))
      if (!ranks_.in_mpi(rank)) return lose(rank, concat("it has not entered MPI_Init", within));
    for (const std::size_t rank : nodes_.ranks(node_))
      if (!ranks_.initialised(rank))
        return lose(rank, concat("it has not returned from MPI_Init", within,
                                 ", which all workers of its host have entered. ", mpi::connections_advice));
  }

  /// Kills the node's remaining processes. Closing lifelines ends only running processes, through libpmix, not those
  /// stopped by a signal.
  int end_ranks(NodeSocket& door) {
    const std::size_t left = ranks_.still_connected();
    if (left > 0)
      log_line(concat("worker ", lost_peer_.rank, " on host ", lost_peer_.host, " is gone (", lost_peer_.why,
                      "); killing the rest of the job on this host: ", left, left == 1 ? " process" : " processes"));
    for (const std::size_t rank : nodes_.ranks(node_))
      if (ranks_.connected(rank) && !(ranks_.said_goodbye(rank) && ranks_.finalized(rank))) door.end(rank);
    return 1;
  }

  /// Refuses processes that connect while the job runs. The refusal is temporary: restarted processes may find the
  /// previous job, which is about to exit.
  [[nodiscard]] static std::optional<net::Refusal> refuse(const net::Handshake& hello) {
    return net::Refusal{concat("Worker ", hello.rank, " on host '", hello.host, "' cannot join a running job"),
                        "all tasks of the job have already joined",
                        "Start all processes of a job together, each with its own index", true};
  }

  void on_pmix(const PmixEvent& event) {
    const std::size_t rank = event.rank;
    switch (event.kind) {
      case PmixEvent::Kind::fence: {
        fence_ = event;
        ++fence_number_;
        const std::span<const char> data{event.data, event.size};
        net::RecordWriter writer;
        writer.number(fence_number_).bytes(std::as_bytes(data));
        if (node_ == 0)
          add_to_fence(fence_number_, 0, std::as_bytes(data));
        else
          links_.send(0, WorldFrame::fence, writer.content());
        std::free(event.data);
        break;
      }
      case PmixEvent::Kind::finalized:
        ranks_.finalize(rank);
        break;
      case PmixEvent::Kind::aborted:
        lose(rank, concat("it called MPI_Abort with ", event.status));
        break;
      case PmixEvent::Kind::lost:
        if (!ranks_.finalized(rank)) lose(rank, "its process exited without MPI_Finalize");
        break;
      case PmixEvent::Kind::connected:
        ranks_.enter_mpi(rank);
        break;
    }
  }

  void on_link(std::size_t node, const net::Frame& frame) {
    net::RecordReader reader{frame.payload};
    switch (static_cast<WorldFrame>(frame.type)) {
      case WorldFrame::fence: {
        const auto number = reader.number<std::uint64_t>();
        if (node_ == 0) add_to_fence(number, node, reader.bytes());
        break;
      }
      case WorldFrame::fence_result: {
        const auto number = reader.number<std::uint64_t>();
        if (node == 0) answer_fence(number, reader.bytes());
        break;
      }
      case WorldFrame::lost:
        tell(lost_from(frame.payload), node);
        break;
      default:
        break;
    }
  }

  void add_to_fence(std::uint64_t number, std::size_t node, std::span<const std::byte> contribution) {
    const std::optional<std::vector<std::byte>> all = fences_.add(number, node, contribution);
    if (!all) return;
    net::RecordWriter writer;
    writer.number(number).bytes(*all);
    links_.send_all(WorldFrame::fence_result, writer.content());
    answer_fence(number, *all);
  }

  void answer_fence(std::uint64_t number, std::span<const std::byte> all) {
    if (!fence_ || number != fence_number_) return;
    PmixServer::answer_fence(*fence_, all);
    fence_.reset();
  }

  void lose(std::size_t rank, const std::string& why) { tell({rank, host_of(rank), why, false}); }
  void lose_node(std::size_t node, const std::string& why) {
    if (leaving_) return;
    lose(nodes_.first(node), why);
  }

  /// Reports a lost process to all except its reporter. Reports nothing after the first loss, which makes the others
  /// exit.
  void tell(const LostPeer& peer, std::size_t from = static_cast<std::size_t>(-1)) {
    if (lost_) return;
    const std::vector<std::byte> record = lost_record(peer);
    ranks_.send_all(WorldFrame::lost, record, peer.rank);
    links_.send_all(WorldFrame::lost, record, from);
    if (peer.in_order) return;
    lost_peer_ = peer;
    lost_ = Deadline::in(options_.grace);
  }

  [[nodiscard]] const std::string& host_of(std::size_t rank) const { return options_.tasks[rank].host; }

  const HostedOptions& options_;
  std::optional<Deadline> gathered_by_;
  NodeMap nodes_;
  std::size_t node_;
  std::string interface_;  ///< of this server's listening address
  net::HandshakeServer reception_;
  NodeRanks ranks_;
  NodeLinks links_;
  FenceTable fences_;
  std::optional<PmixEvent> fence_;
  std::uint64_t fence_number_ = 0;
  LostPeer lost_peer_;
  std::optional<Deadline> lost_;     ///< the end of the grace period
  std::optional<Deadline> leaving_;  ///< the end of the wait for other nodes
};

}  // namespace dist::detail
