#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/hosted_options.hpp>
#include <dist/cluster/mpi/node_links.hpp>
#include <dist/core/log.hpp>
#include <dist/net/dialer.hpp>
#include <dist/net/handshake.hpp>
#include <dist/net/handshake_server.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::detail {

/// The reason why a world could not be created. The server that detects it sends it to all processes, which throw it.
struct WorldFailure {
  enum class Kind : std::uint8_t { deadline = 1, rendezvous = 2 };

  Kind kind = Kind::rendezvous;
  net::Refusal text;

  [[nodiscard]] std::vector<std::byte> record() const {
    net::RecordWriter writer;
    writer.number(static_cast<std::uint8_t>(kind)).bytes(net::refusal_record(text));
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static WorldFailure from(std::span<const std::byte> record) {
    net::RecordReader reader{record};
    WorldFailure failure;
    failure.kind = reader.number<std::uint8_t>() == 1 ? Kind::deadline : Kind::rendezvous;
    failure.text = net::refusal_from(reader.bytes());
    reader.expect_end();
    return failure;
  }

  /// Throws DeadlineExceeded or RendezvousError.
  [[noreturn]] void raise() const {
    if (kind == Kind::deadline) throw DeadlineExceeded(text.problem, text.why, text.suggestion);
    throw RendezvousError(text.problem, text.why, text.suggestion);
  }
};

/// The first server's data once all tasks have connected.
struct WorldInfo {
  std::string name;
  std::vector<std::string> node_names;

  [[nodiscard]] std::vector<std::byte> record() const {
    net::RecordWriter writer;
    writer.string(name);
    for (const std::string& node : node_names) writer.string(node);
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static WorldInfo from(std::span<const std::byte> record, std::size_t nodes) {
    net::RecordReader reader{record};
    WorldInfo start;
    start.name = reader.string();
    for (std::size_t node = 0; node < nodes; ++node) start.node_names.push_back(reader.string());
    reader.expect_end();
    return start;
  }
};

/// Thrown if the rank that started the server exits before all tasks have connected. Frees its port for another
/// attempt; other ranks reconnect.
struct Abandoned {};

/// The refusal for tasks that are late.
[[nodiscard]] inline net::Refusal late_refusal(const MissingTasks& missing, net::Milliseconds within) {
  return {concat(missing.who, " within ", within), missing.why,
          "Start it with the same list of tasks, check that no firewall blocks the listed ports, or set a longer "
          "deadline"};
}

/// The first phase of a server: its ranks and the other servers connect. Processes may disconnect and reconnect before
/// all are there.
class Rendezvous {
 public:
  Rendezvous(const HostedOptions& options, const NodeMap& nodes, net::HandshakeServer& reception, NodeRanks& ranks,
             NodeLinks& links, std::optional<net::Deadline> deadline = std::nullopt)
      : options_(options),
        deadline_(deadline.value_or(net::Deadline::in(options.deadline))),
        nodes_(nodes),
        node_(nodes.node_of(options.rank)),
        reception_(reception),
        ranks_(ranks),
        links_(links),
        present_(options.tasks.size()),
        node_names_(nodes.nodes()) {
    node_names_[node_] = net::host_name();
    present_[options.rank] = true;
  }

  /// Returns when all tasks have connected. Throws WorldFailure, naming missing tasks, or Abandoned.
  [[nodiscard]] WorldInfo run() {
    const net::Deadline patience = net::Deadline::in(options_.patience);
    bool said = false;
    if (node_ != 0) dial_first();
    while (!start_) {
      if (node_ == 0 && all_present()) return begin();
      if (deadline_.later(node_ == 0 ? net::Milliseconds{0} : net::Milliseconds{500}).passed()) throw late();
      if (!said && patience.passed()) {
        said = true;
        say_who_is_missing();
      }
      if (dialer_) dial();
      tell_who_is_missing();
      std::vector<pollfd> entries;
      reception_.add_entries(entries);
      ranks_.add_entries(entries);
      links_.add_entries(entries);
      net::Deadline next = deadline_.sooner(reception_.next());
      if (dialer_) {
        entries.push_back(dialer_->poll_entry());
        next = next.sooner(dialer_->next());
      }
      poll(entries.data(), entries.size(), next.poll_timeout(net::Milliseconds{500}));
      // Removes exited processes before it admits their replacements.
      ranks_.advance([](std::size_t) {}, [&](std::size_t rank, const std::string&) { left(rank); });
      links_.advance([&](std::size_t node, const net::Frame& frame) { take(node, frame); },
                     [&](std::size_t node, const std::string&) { unlinked(node); });
      reception_.advance([&](const net::Handshake& hello) { return admit(hello); },
                         [&](net::Accepted guest) { enter(std::move(guest)); });
      // With a secret, the peer belongs to this job; without one, it may be any process.
      if (reception_.other_list() && !options_.secret.empty())
        throw WorldFailure{WorldFailure::Kind::rendezvous, *reception_.other_list()};
    }
    return *start_;
  }

 private:
  [[nodiscard]] std::optional<net::Refusal> admit(const net::Handshake& hello) {
    const auto rank = static_cast<std::size_t>(hello.rank);
    const std::string who = concat("Worker ", rank, " on host '", hello.host, "'");
    if (hello.rank >= options_.tasks.size())
      return net::Refusal{who + " is not in the list of tasks",
                          concat("the list has ", options_.tasks.size(), " tasks"), "Give every process its own index"};
    const bool server = hello.role == net::Handshake::Role::server;
    const std::size_t node = nodes_.node_of(rank);
    const bool belongs = server ? node_ == 0 && node != 0 && nodes_.first(node) == rank : node == node_;
    if (!belongs)
      return net::Refusal{who + " connected to the wrong task", concat("this is worker ", options_.rank),
                          "Run the same version in all processes of the job"};
    if (!server && hello.machine != net::machine_id())
      return net::Refusal{
          concat(who, " runs on another machine or container than worker ", options_.rank),
          concat("both addresses have the host '", options_.tasks[rank].host, "', so they count as one node"),
          "List each task with an address of its machine or container"};
    if (server ? links_.connected(node) : rank == options_.rank || ranks_.connected(rank))
      return net::Refusal{concat("Worker ", rank, " has joined twice"),
                          concat("a second process, on host '", hello.host, "', identifies itself as worker ", rank),
                          "Give every process its own index"};
    return std::nullopt;
  }

  void enter(net::Accepted guest) {
    const auto rank = static_cast<std::size_t>(guest.hello.rank);
    const bool server = guest.hello.role == net::Handshake::Role::server;
    guest.connection.allow(server ? longest_link_frame : longest_lifeline_frame);
    if (server) {
      node_names_[nodes_.node_of(rank)] = guest.hello.host;
      links_.add(nodes_.node_of(rank), std::move(guest.connection));
    } else {
      ranks_.add(rank, std::move(guest.connection));
      tell(rank, true);
    }
    told_ = {};  // the new process needs a report, too
  }

  void left(std::size_t rank) {
    if (rank == options_.rank) throw Abandoned{};
    tell(rank, false);
  }

  void tell(std::size_t rank, bool present) {
    present_[rank] = present;
    net::RecordWriter writer;
    writer.number(std::uint64_t{rank});
    if (node_ != 0) links_.send(0, present ? WorldFrame::present : WorldFrame::absent, writer.content());
  }

  void take(std::size_t node, const net::Frame& frame) {
    const auto type = static_cast<WorldFrame>(frame.type);
    if (type == WorldFrame::start && node_ != 0) start_ = WorldInfo::from(frame.payload, nodes_.nodes());
    if (type == WorldFrame::failed) throw WorldFailure::from(frame.payload);
    if (type == WorldFrame::waiting && node_ != 0) elsewhere_ = MissingTasks::from(frame.payload);
    if (type != WorldFrame::present && type != WorldFrame::absent) return;
    net::RecordReader reader{frame.payload};
    const auto rank = reader.number<std::uint64_t>();
    if (rank < present_.size() && nodes_.node_of(rank) == node) present_[rank] = type == WorldFrame::present;
  }

  void unlinked(std::size_t node) {
    if (node_ != 0) return dial_first();
    for (const std::size_t rank : nodes_.ranks(node)) present_[rank] = false;
  }

  void dial_first() {
    net::Handshake hello{net::Handshake::Role::server,
                         options_.rank,
                         options_.tasks.size(),
                         net::list_checksum(options_.tasks, options_.job),
                         net::host_name(),
                         net::machine_id()};
    dialer_.emplace(
        options_.tasks[0], std::move(hello),
        net::Dialer::Options{options_.secret, options_.handshake, longest_link_frame, options_.port_patience});
  }

  void dial() {
    try {
      dialer_->advance();
    } catch (const RendezvousError&) {
      if (!dialer_->refusal()) throw;
      throw WorldFailure{WorldFailure::Kind::rendezvous, *dialer_->refusal()};
    }
    if (!dialer_->welcomed()) return;
    links_.add(0, dialer_->take());
    dialer_.reset();
    for (const std::size_t rank : nodes_.ranks(node_))
      if (present_[rank]) tell(rank, true);
  }

  [[nodiscard]] bool all_present() const {
    for (const bool present : present_)
      if (!present) return false;
    return true;
  }

  [[nodiscard]] WorldInfo begin() {
    WorldInfo start{concat("dist-", net::list_checksum(options_.tasks, options_.job), "-"), node_names_};
    const net::Nonce random = net::random_nonce();
    for (std::size_t i = 0; i < 8; ++i) start.name += concat(i == 0 ? "" : ".", std::to_integer<int>(random[i]));
    // Machines may share a name (containers often do), but nodes must not. libpmix overruns its buffer for names over
    // about 50 characters.
    constexpr std::size_t longest = 40;
    const auto are_usable = [](const std::vector<std::string>& names) {
      for (std::size_t node = 0; node < names.size(); ++node) {
        if (names[node].size() > longest) return false;
        for (std::size_t other = 0; other < node; ++other)
          if (names[node] == names[other]) return false;
      }
      return true;
    };
    if (!are_usable(start.node_names))
      for (std::size_t node = 0; node < node_names_.size(); ++node)
        start.node_names[node] = options_.tasks[nodes_.first(node)].host;
    if (!are_usable(start.node_names))
      for (std::size_t node = 0; node < node_names_.size(); ++node) start.node_names[node] = concat("node", node);
    links_.send_all(WorldFrame::start, start.record());
    return start;
  }

  /// The first server has the state of all nodes; other servers have their own node's, and the first server's report.
  [[nodiscard]] MissingTasks missing() const {
    std::string names;
    std::size_t count = 0;
    const auto name = [&](std::size_t rank) {
      if (++count <= 8)
        names += concat(count == 1 ? "Worker " : ", worker ", rank, " at ", to_string(options_.tasks[rank]));
    };
    for (std::size_t rank = 0; rank < present_.size(); ++rank)
      if (!present_[rank] && (node_ == 0 || nodes_.node_of(rank) == node_)) name(rank);
    if (count == 0 && node_ != 0 && !dialer_ && elsewhere_) return *elsewhere_;
    if (count == 0) name(0);
    if (count > 8) names += concat(" and ", count - 8, " more");
    MissingTasks found{concat(names, count == 1 ? " has" : " have", " not joined"), "no connection arrived"};
    if (dialer_)
      found.why = dialer_->last_problem();
    else if (!reception_.disagreement().empty())
      found.why = reception_.disagreement();
    else if (reception_.turned_away() > 0)
      found.why =
          concat(reception_.turned_away(), " rejected connection(s), the last one: ", reception_.last_problem());
    return found;
  }
  [[nodiscard]] WorldFailure late() const {
    const MissingTasks found = missing();
    return {WorldFailure::Kind::deadline, late_refusal(found, options_.deadline)};
  }
  /// Prints the missing tasks, for jobs started by hand.
  void say_who_is_missing() const {
    const MissingTasks found = missing();
    log_line(concat(found.who, " yet (", found.why, "); waiting up to ", options_.deadline));
  }
  /// Sends the missing tasks to waiting processes, which can then print them.
  void tell_who_is_missing() {
    MissingTasks found = missing();
    if (found == told_) return;
    told_ = std::move(found);
    const std::vector<std::byte> record = told_.record();
    ranks_.send_all(WorldFrame::waiting, record);
    if (node_ == 0) links_.send_all(WorldFrame::waiting, record);
  }

  const HostedOptions& options_;
  net::Deadline deadline_;
  const NodeMap& nodes_;
  std::size_t node_;
  net::HandshakeServer& reception_;
  NodeRanks& ranks_;
  NodeLinks& links_;
  std::vector<bool> present_;
  std::vector<std::string> node_names_;
  std::optional<net::Dialer> dialer_;
  std::optional<WorldInfo> start_;
  std::optional<MissingTasks> elsewhere_;  ///< as reported by the first server
  MissingTasks told_;
};

}  // namespace dist::detail
