/// Ranks of a hosted world as children of a test, and their output.
#pragma once

#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/mpi/hosted_world.hpp>
#include <dist/io/file.hpp>

namespace dist_test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// One text per rank, in memory that they share with the test.
class Notes {
 public:
  explicit Notes(std::size_t ranks)
      : size_(ranks * room),
        memory_(static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  ~Notes() { munmap(memory_, size_); }

  void write(std::size_t rank, std::string_view text) {
    std::strncpy(memory_ + rank * room, std::string{text}.c_str(), room - 1);
  }
  [[nodiscard]] std::string operator[](std::size_t rank) const { return memory_ + rank * room; }

 private:
  static constexpr std::size_t room = 2048;
  std::size_t size_;
  char* memory_;
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Points in time on a clock that all processes of this machine share, as text, and the seconds since one.
inline std::string now_as_text() { return std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()); }
inline double seconds_since(const std::string& point) {
  const std::chrono::steady_clock::duration since{std::strtoll(point.c_str(), nullptr, 10)};
  return seconds_since(std::chrono::steady_clock::time_point{since});
}

inline dist::HostedWorld join_and_initialise(const dist::HostedOptions& options) {
  dist::HostedWorld world = dist::HostedWorld::join(options);
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
  world.initialised();
  return world;
}

/// Polls a lifeline until it reports a loss other than an orderly exit; empty after `longest`.
inline std::optional<dist::LostPeer> await_loss(const dist::HostedWorld& world, milliseconds longest = 90s) {
  for (const auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < longest;) {
    if (std::optional<dist::LostPeer> lost = world.lost_peer(); lost && !lost->in_order) return lost;
    usleep(500);
  }
  return std::nullopt;
}

/// Returns the exception of `join` as "<kind>: <text>", or "joined".
inline std::string try_to_join(const dist::HostedOptions& options) {
  try {
    const dist::HostedWorld world = dist::HostedWorld::join(options);
    return "joined";
  } catch (const dist::DeadlineExceeded& error) {
    return dist::concat("deadline: ", error.what());
  } catch (const dist::RendezvousError& error) {
    return dist::concat("rendezvous: ", error.what());
  } catch (const dist::InvalidArgument& error) {
    return dist::concat("argument: ", error.what());
  } catch (const dist::Unavailable& error) {
    return dist::concat("unavailable: ", error.what());
  }
}

/// Opens a silent connection to the PMIx server of these variables; empty if it does not accept it within 300 ms.
inline dist::io::Descriptor try_mute_connection(const std::vector<std::string>& variables) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const std::string& variable : variables)
    if (variable.starts_with("PMIX_SERVER_URI"))
      address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(variable.c_str() + variable.rfind(':') + 1)));
  dist::io::Descriptor mute{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  connect(mute.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  pollfd entry{mute.get(), POLLOUT, 0};
  if (poll(&entry, 1, 300) != 1 || (entry.revents & POLLERR) != 0) mute.reset();
  return mute;
}
inline dist::io::Descriptor mute_connection(const std::vector<std::string>& variables) {
  dist::io::Descriptor mute = try_mute_connection(variables);
  if (!mute) std::abort();
  usleep(100'000);  // until the server has accepted it
  return mute;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace dist_test
