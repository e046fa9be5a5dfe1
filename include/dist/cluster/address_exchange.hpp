#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/net/connection.hpp>
#include <dist/net/dialer.hpp>
#include <dist/net/listen.hpp>
#include <dist/net/machine.hpp>
#include <dist/net/reception.hpp>

namespace dist::net {

/// What a worker that knows only where worker 0 is must know to learn where all workers are.
struct MeetingOptions {
  Endpoint place;                      ///< worker 0's, the same in every process
  std::size_t rank = 0;                ///< of this process
  std::size_t world = 1;               ///< number of workers
  std::string secret;                  ///< of the job; empty: peers are believed
  Milliseconds deadline{300'000};      ///< for all to come
  Milliseconds patience{10'000};       ///< for all to come, before stderr says which are missing
  Milliseconds handshake{3'000};       ///< for a connection to say what it is
  std::string machine = machine_id();  ///< the machine of this process
};

namespace detail {

inline constexpr std::uint16_t address_list_frame = 16;

/// Worker 0's side: the others come, and when all have come each is told where all are.
class Meeting {
 public:
  explicit Meeting(const MeetingOptions& options, std::uint64_t checksum)
      : options_(options), guests_(options.world), checksum_(checksum) {}

  [[nodiscard]] std::vector<Endpoint> hold() {
    await_all();
    std::vector<Endpoint> addresses = addresses_of_all();
    RecordWriter list;
    for (const Endpoint& address : addresses) list.string(address.host).string(address.port);
    for (std::optional<Guest>& guest : guests_)
      if (guest) guest->connection.send(address_list_frame, list.content());
    await_departures();
    return addresses;
  }

 private:
  /// The listening socket is closed at the end: a worker that comes back to this port wants the job's next stage.
  void await_all() {
    Reception reception{listen_at(options_.place, {}),
                        {options_.secret, options_.world, checksum_, options_.handshake, 64}};
    const Deadline deadline = Deadline::in(options_.deadline);
    const Deadline patience = Deadline::in(options_.patience);
    bool said = false;
    for (std::size_t missing = missing_count(); missing != 0; missing = missing_count()) {
      if (deadline.passed())
        throw DeadlineExceeded(text(names_of_missing(), missing == 1 ? " has" : " have", " not come to worker 0 at ",
                                    to_string(options_.place), " within ", seconds(options_.deadline)),
                               why_missing(reception),
                               "Start all workers with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and check "
                               "that no firewall blocks the port");
      if (!said && patience.passed()) {
        said = true;
        const std::string line = text("dist: ", names_of_missing(), missing == 1 ? " has" : " have",
                                      " not come to worker 0 at ", to_string(options_.place), " yet (",
                                      why_missing(reception), "); waiting up to ", seconds(options_.deadline), "\n");
        static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
      }
      std::vector<pollfd> entries;
      reception.add_entries(entries);
      for (const std::optional<Guest>& guest : guests_)
        if (guest) entries.push_back(guest->connection.poll_entry());
      poll(entries.data(), entries.size(),
           deadline.sooner(reception.next()).poll_timeout(said ? Milliseconds{1000} : Milliseconds{200}));
      reception.advance([&](const Hello& hello) { return admit(hello); },
                        [&](Guest guest) {
                          const auto rank = static_cast<std::size_t>(guest.hello.rank);
                          guests_[rank].emplace(std::move(guest));
                        });
      // With a secret it was one of us who came with other numbers; without, it may have been anybody.
      if (const std::optional<Refusal>& other = reception.other_list(); other && !options_.secret.empty())
        throw RendezvousError(other->problem, other->why, other->suggestion);
      // A worker that ended, and may come again; a guest has nothing to say.
      for (std::optional<Guest>& guest : guests_)
        if (guest && (!guest->connection.receive() || !guest->connection.received_all())) guest.reset();
    }
  }

  [[nodiscard]] std::optional<Refusal> admit(const Hello& hello) const {
    const std::string worker = text("Worker ", hello.rank, " on host '", hello.host, "'");
    if (hello.rank == 0 || hello.rank >= options_.world)
      return Refusal{worker + " cannot join", text("the ranks of the others are 1 to ", options_.world - 1),
                     "Give every process its own RANK"};
    if (guests_[static_cast<std::size_t>(hello.rank)])
      return Refusal{text("Worker ", hello.rank, " has come twice"),
                     text("a second process, on host '", hello.host, "', says that it is worker ", hello.rank),
                     "Give every process its own RANK"};
    return std::nullopt;
  }

  /// The workers of one machine share the host by which worker 0 saw the first of them; worker 0's own machine has the
  /// host of the meeting place. Ports count from that of the meeting place on every machine.
  [[nodiscard]] std::vector<Endpoint> addresses_of_all() const {
    struct Machine {
      std::string id;
      std::string host;
      std::uint32_t workers;
    };
    const std::uint32_t first_port = port_number(options_.place);
    std::vector<Machine> machines{{options_.machine, options_.place.host, 1}};
    std::vector<Endpoint> addresses{options_.place};
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
      const Guest& guest = *guests_[rank];
      std::size_t at = 0;
      while (at < machines.size() && machines[at].id != guest.hello.machine) ++at;
      if (at == machines.size()) machines.push_back({guest.hello.machine, host_of(guest.connection), 0});
      const std::uint32_t number = machines[at].workers++;
      const std::uint32_t port = first_port + number <= 65535 ? first_port + number : first_port - number;
      addresses.push_back({machines[at].host, text(port)});
    }
    return addresses;
  }
  [[nodiscard]] static std::string host_of(const Connection& connection) {
    SocketAddress address;
    address.size = sizeof address.storage;
    getpeername(connection.descriptor(), address.get(), &address.size);
    return to_string(address);
  }

  /// Each guest closes its connection when it has the list.
  void await_departures() {
    const Deadline deadline = Deadline::in(options_.handshake);
    for (std::optional<Guest>& guest : guests_)
      while (guest && !deadline.passed()) {
        guest->connection.flush();
        if (!guest->connection.receive()) break;
        pollfd entry = guest->connection.poll_entry();
        poll(&entry, 1, deadline.poll_timeout());
      }
  }

  [[nodiscard]] std::size_t missing_count() const {
    std::size_t count = 0;
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) count += guests_[rank] ? 0U : 1U;
    return count;
  }
  [[nodiscard]] std::string names_of_missing() const {
    constexpr std::size_t most = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t rank = 1; rank < guests_.size(); ++rank)
      if (!guests_[rank] && ++count <= most) names += text(count == 1 ? "Worker " : ", worker ", rank);
    if (count > most) names += text(" and ", count - most, " more");
    return names;
  }
  [[nodiscard]] static std::string why_missing(const Reception& reception) {
    if (!reception.disagreement().empty()) return reception.disagreement();
    if (reception.turned_away() != 0) return text("the last connection was turned away: ", reception.last_problem());
    return "no connection came";
  }

  const MeetingOptions& options_;
  std::vector<std::optional<Guest>> guests_;  // by rank; never one of worker 0
  std::uint64_t checksum_;
};

/// The list of `world` addresses that worker 0 has sent. Throws FrameError.
[[nodiscard]] inline std::vector<Endpoint> address_list_from(const Frame& frame, std::size_t world) {
  if (frame.type != address_list_frame)
    throw FrameError("Worker 0 sends what is no list of addresses", text("frame ", frame.type),
                     "Let all processes of the job run the same version");
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

/// The addresses of all workers, in rank order and the same in every process, for workers that were told only where
/// worker 0 is: they meet there. Worker 0 listens at the meeting place and closes it again before this returns.
///
/// The workers of one machine get the same host and ports of their own: the port of the meeting place and those that
/// follow it. Throws DeadlineExceeded naming the workers that have not come, RendezvousError for an address that cannot
/// be listened at, a rank that came twice, another number of workers or a wrong secret.
[[nodiscard]] inline std::vector<Endpoint> exchange_addresses(const MeetingOptions& options) {
  const std::uint64_t checksum = list_checksum({&options.place, 1}, "addresses");
  if (options.rank == 0) return detail::Meeting{options, checksum}.hold();

  const Deadline deadline = Deadline::in(options.deadline);
  const std::string whom = text("Worker 0 at ", to_string(options.place));
  const Hello hello{Hello::Role::worker, options.rank, options.world, checksum, host_name(), options.machine};
  constexpr std::size_t longest_entry = 300;
  for (;;) {
    Dialer dialer{options.place, hello, {options.secret, options.handshake, longest_entry * options.world}};
    Connection connection = dial(dialer, whom, options.deadline, deadline);
    for (;;) {
      const bool alive = connection.receive();
      if (const std::optional<Frame> frame = connection.next()) return detail::address_list_from(*frame, options.world);
      if (!alive) break;                                // worker 0 ended, and may be started again
      if (deadline.later(Milliseconds{2000}).passed())  // worker 0 keeps the same deadline and knows which are missing
        throw DeadlineExceeded(text("Not all workers have come to ", whom, " within ", seconds(options.deadline)),
                               "worker 0 has not told the addresses of all", "See what worker 0 printed");
      pollfd entry = connection.poll_entry();
      poll(&entry, 1, 200);
    }
  }
}

}  // namespace dist::net
