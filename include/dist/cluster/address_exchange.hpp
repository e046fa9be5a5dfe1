#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/net/connection.hpp>
#include <dist/net/dialer.hpp>
#include <dist/net/handshake_server.hpp>
#include <dist/net/listen.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::net {

/// The input of `exchange_addresses`.
struct AddressServerOptions {
  Endpoint place;                      ///< of the rendezvous: the same port in every process; host names may differ
  std::size_t rank = 0;                ///< of this process
  std::size_t world = 1;               ///< number of processes
  std::string secret;                  ///< of the job; empty: no authentication
  Milliseconds deadline{300'000};      ///< until all workers must have connected
  Milliseconds patience{10'000};       ///< before stderr lists the missing workers
  Milliseconds handshake{3'000};       ///< for a new connection to complete its handshake
  std::string machine = machine_id();  ///< equal in all processes of a machine
  std::optional<std::size_t> local_rank{};   ///< index of this process on its machine, if known
  std::vector<std::uint16_t> other_ports{};  ///< alternatives if the port of `place` is in use
  bool agent_has_place = false;    ///< `place` is on the machine of the launcher's store, which may not run rank 0
  bool workers_elsewhere = false;  ///< True if other machines run workers, or might
  std::string job{};               ///< only workers with the same job name connect
};

namespace detail {

inline constexpr std::uint16_t address_list_frame = 16;
inline constexpr std::uint16_t free_port_frame = 17;

/// True if this process hosts the rendezvous: it has the lowest rank on that machine, which is rank 0 unless the
/// launcher's store, on a machine with other ranks, has the address. Waits until the host name resolves.
[[nodiscard]] inline bool holds_meeting(const AddressServerOptions& options, Deadline deadline) {
  const bool first = options.local_rank.value_or(options.rank) == 0;
  if (!options.agent_has_place || !options.local_rank || !first) return options.rank == 0;
  for (;;) {
    const Resolved resolved = resolve(options.place);
    for (const SocketAddress& address : resolved.addresses)
      if (address.is_loopback() || !interface_of(address).empty()) return true;
    if (!resolved.addresses.empty() || deadline.passed()) return false;
    poll(nullptr, 0, 50);
  }
}

/// Returns the first free port, from `wanted` on, at the local address of `connection`.
[[nodiscard]] inline std::uint16_t free_port(const Connection& connection, std::uint32_t wanted) {
  constexpr std::uint32_t most = 100;
  const SocketAddress here = own_address(connection.descriptor());
  for (std::uint32_t port = wanted; port < wanted + most && port <= 65535; ++port)
    if (try_to_listen(here.at_port(static_cast<std::uint16_t>(port)))) return static_cast<std::uint16_t>(port);
  return static_cast<std::uint16_t>(wanted);
}

/// The rendezvous host: accepts all other workers, then sends each the list of addresses.
class AddressServer {
 public:
  explicit AddressServer(const AddressServerOptions& options, std::uint64_t checksum)
      : options_(options), guests_(options.world), ports_(options.world), checksum_(checksum) {}

  [[nodiscard]] std::vector<Endpoint> hold() {
    await_all();
    std::vector<Endpoint> addresses = addresses_of_all();
    RecordWriter list;
    for (const Endpoint& address : addresses) list.string(address.host).string(address.port);
    for (std::optional<Accepted>& guest : guests_)
      if (guest) guest->connection.send(address_list_frame, list.content());
    await_departures();
    return addresses;
  }

 private:
  [[nodiscard]] io::Descriptor listen() {
    ListenOptions listening;
    listening.name_unknown = options_.deadline;
    listening.peers_elsewhere = options_.workers_elsewhere;
    listening.widen_loopback = true;
    listening.authenticated = !options_.secret.empty();
    listening.in_use_advice =
        "Choose another MASTER_PORT, or end the process that holds the port (ss -ltnp shows it); if two processes were "
        "started with the same RANK, give each its own";
    io::Descriptor socket = open_at(options_.place, listening, [&](const SocketAddress& address) {
      io::Descriptor opened = try_to_listen(address);
      for (std::size_t i = 0; i < options_.other_ports.size() && !opened && errno == EADDRINUSE; ++i)
        opened = try_to_listen(address.at_port(options_.other_ports[i]));
      return opened;
    });
    port_ = own_address(socket.get()).port();
    return socket;
  }

  /// Stops listening at the end: a worker that reconnects belongs to the job's next stage.
  void await_all() {
    HandshakeServer reception{listen(), {options_.secret, options_.world, checksum_, options_.handshake, 64, true}};
    const Deadline deadline = Deadline::in(options_.deadline);
    const Deadline patience = Deadline::in(options_.patience);
    bool said = false;
    for (std::size_t missing = missing_count(); missing != 0; missing = missing_count()) {
      if (deadline.passed())
        throw DeadlineExceeded(
            concat(names_of_missing(), missing == 1 ? " has" : " have", " not joined the rendezvous of worker ",
                   options_.rank, " at ", to_string(options_.place), " within ", options_.deadline),
            why_missing(reception),
            "Start all workers with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and check "
            "that no firewall blocks the port");
      if (!said && patience.passed()) {
        said = true;
        const std::string line =
            concat("dist: ", names_of_missing(), missing == 1 ? " has" : " have",
                   " not joined the rendezvous of worker ", options_.rank, " at ", to_string(options_.place), " yet (",
                   why_missing(reception), "); waiting up to ", options_.deadline, "\n");
        static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
      }
      std::vector<pollfd> entries;
      reception.add_entries(entries);
      for (const std::optional<Accepted>& guest : guests_)
        if (guest) entries.push_back(guest->connection.poll_entry());
      poll(entries.data(), entries.size(),
           deadline.sooner(reception.next()).poll_timeout(said ? Milliseconds{1000} : Milliseconds{200}));
      reception.advance([&](const Handshake& hello) { return admit(hello); },
                        [&](Accepted guest) {
                          const auto rank = static_cast<std::size_t>(guest.hello.rank);
                          guests_[rank].emplace(std::move(guest));
                        });
      // With a secret, the peer belongs to this job; without one, it may be any process.
      if (const std::optional<Refusal>& other = reception.other_list(); other && !options_.secret.empty())
        throw RendezvousError(other->problem, other->why, other->suggestion);
      for (std::size_t rank = 0; rank < guests_.size(); ++rank)
        if (guests_[rank] && !attend(rank)) {  // a worker that exited, and may reconnect
          guests_[rank].reset();
          ports_[rank].reset();
        }
    }
  }

  /// Receives the free port of a worker. Returns false if the connection is closed, or for any other message.
  [[nodiscard]] bool attend(std::size_t rank) {
    Connection& connection = guests_[rank]->connection;
    try {
      const bool alive = connection.receive();
      if (const std::optional<Frame> frame = ports_[rank] ? std::nullopt : connection.next()) {
        RecordReader reader{frame->payload};
        ports_[rank] = reader.number<std::uint16_t>();
        reader.expect_end();
        if (frame->type != free_port_frame) return false;
      }
      return alive && (!ports_[rank] || connection.received_all());
    } catch (const FrameError&) {
      return false;
    }
  }

  [[nodiscard]] std::optional<Refusal> admit(const Handshake& hello) const {
    const std::string worker = concat("Worker ", hello.rank, " on host '", hello.host, "'");
    if (hello.rank >= options_.world)
      return Refusal{worker + " cannot join", concat("ranks are 0 to ", options_.world - 1),
                     "Give every process its own RANK"};
    if (hello.rank == options_.rank || guests_[static_cast<std::size_t>(hello.rank)])
      return Refusal{concat("Worker ", hello.rank, " has joined twice"),
                     concat("a second process, on host '", hello.host, "', identifies itself as worker ", hello.rank),
                     "Give every process its own RANK"};
    return std::nullopt;
  }

  /// The workers of a machine share a host: the address from which the first of them connected; on this machine, the
  /// address to which others connected, or the host of the rendezvous. Ports are consecutive, from the rendezvous port
  /// here, and elsewhere from the first worker's free port.
  [[nodiscard]] std::vector<Endpoint> addresses_of_all() const {
    struct Machine {
      std::string id;
      std::string host;
      std::uint32_t port;
    };
    Machine own{options_.machine, options_.place.host, port_};
    for (const std::optional<Accepted>& guest : guests_)
      if (guest && guest->hello.machine != options_.machine)
        own.host = to_string(own_address(guest->connection.descriptor()));
    std::vector<Machine> machines{own};
    std::vector<Endpoint> addresses;
    for (std::size_t rank = 0; rank < guests_.size(); ++rank) {
      const std::string& id = guests_[rank] ? guests_[rank]->hello.machine : options_.machine;
      std::size_t at = 0;
      while (at < machines.size() && machines[at].id != id) ++at;
      if (at == machines.size()) machines.push_back({id, host_of(guests_[rank]->connection), *ports_[rank]});
      std::uint32_t& next = machines[at].port;
      addresses.push_back({machines[at].host, concat(next)});
      next = next < 65535 ? next + 1 : 1024;
    }
    return addresses;
  }
  [[nodiscard]] static std::string host_of(const Connection& connection) {
    SocketAddress address;
    address.size = sizeof address.storage;
    getpeername(connection.descriptor(), address.get(), &address.size);
    return to_string(address);
  }

  /// Waits until each worker has received the list, and closes its connection.
  void await_departures() {
    const Deadline deadline = Deadline::in(options_.handshake);
    for (std::optional<Accepted>& guest : guests_)
      while (guest && !deadline.passed()) {
        guest->connection.flush();
        if (!guest->connection.receive()) break;
        pollfd entry = guest->connection.poll_entry();
        poll(&entry, 1, deadline.poll_timeout());
      }
  }

  [[nodiscard]] std::size_t missing_count() const {
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < guests_.size(); ++rank) count += is_missing(rank) ? 1U : 0U;
    return count;
  }
  [[nodiscard]] bool is_missing(std::size_t rank) const { return rank != options_.rank && !ports_[rank]; }
  [[nodiscard]] std::string names_of_missing() const {
    constexpr std::size_t most = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < guests_.size(); ++rank)
      if (is_missing(rank) && ++count <= most) names += concat(count == 1 ? "Worker " : ", worker ", rank);
    if (count > most) names += concat(" and ", count - most, " more");
    return names;
  }
  [[nodiscard]] static std::string why_missing(const HandshakeServer& reception) {
    if (!reception.disagreement().empty()) return reception.disagreement();
    if (reception.turned_away() != 0) return concat("the last connection was rejected: ", reception.last_problem());
    return "no connection arrived";
  }

  const AddressServerOptions& options_;
  std::vector<std::optional<Accepted>> guests_;      // by rank; empty for this process
  std::vector<std::optional<std::uint16_t>> ports_;  // free ports that the workers reported
  std::uint64_t checksum_;
  std::uint16_t port_ = 0;  // of the rendezvous
};

/// Reads `world` addresses. Throws FrameError.
[[nodiscard]] inline std::vector<Endpoint> address_list_from(const Frame& frame, std::size_t world) {
  if (frame.type != address_list_frame)
    throw FrameError("The host of the rendezvous sent a frame that is not a list of addresses",
                     concat("frame ", frame.type), "Run the same version in all processes of the job");
  RecordReader reader{frame.payload};
  std::vector<Endpoint> addresses;
  for (std::size_t rank = 0; rank < world; ++rank) {
    std::string host = reader.string(256);
    addresses.push_back({std::move(host), reader.string(8)});
  }
  reader.expect_end();
  return addresses;
}

}  // namespace detail

/// Returns the addresses of all workers in rank order, the same in every process, if workers have only the address of
/// the rendezvous. One of them (`holds_meeting`) listens there until this returns.
///
/// The workers of a machine get the same host and consecutive ports: from the rendezvous port, or the next one that is
/// free there. Throws DeadlineExceeded naming missing workers, and RendezvousError if the address cannot be bound, a
/// rank connects twice, the number of workers differs or the secret is wrong.
[[nodiscard]] inline std::vector<Endpoint> exchange_addresses(const AddressServerOptions& options) {
  const std::uint64_t checksum = list_checksum({}, concat("addresses ", options.place.port, " ", options.job));
  const Deadline deadline = Deadline::in(options.deadline);
  if (detail::holds_meeting(options, deadline)) return detail::AddressServer{options, checksum}.hold();

  const std::string whom = concat("The worker that hosts the rendezvous at ", to_string(options.place));
  const Handshake hello{Handshake::Role::worker, options.rank, options.world, checksum, host_name(), options.machine};
  constexpr std::size_t longest_entry = 300;
  for (;;) {
    Dialer dialer{
        options.place,
        hello,
        {options.secret, options.handshake, longest_entry * options.world, options.deadline, options.other_ports}};
    Connection connection = dial(dialer, whom, options.deadline, deadline, options.patience);
    RecordWriter found;
    found.number(detail::free_port(connection, port_number(options.place)));
    connection.send(detail::free_port_frame, found.content());
    for (;;) {
      connection.flush();
      const bool alive = connection.receive();
      if (const std::optional<Frame> frame = connection.next()) return detail::address_list_from(*frame, options.world);
      if (!alive) break;                                // the host exited, and may be restarted
      if (deadline.later(Milliseconds{2000}).passed())  // the host has the same deadline, and lists the missing workers
        throw DeadlineExceeded(concat("Not all workers have joined the rendezvous at ", to_string(options.place),
                                      " within ", options.deadline),
                               "the worker that hosts it has not sent the list of addresses",
                               "Read the output of the other workers");
      pollfd entry = connection.poll_entry();
      poll(&entry, 1, 200);
    }
  }
}

}  // namespace dist::net
