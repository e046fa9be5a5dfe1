// Two virtual hosts on this machine: network namespaces with separate names and addresses, connected by a virtual
// cable, which end with the test. Requires the necessary privileges, and the programs ip and nsenter.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include <dist/core/text.hpp>
#include <dist/io/file.hpp>

#include "support/processes.hpp"

namespace support {

/// Create it while this process has only one thread.
class TwoHosts {
 public:
  static std::string address(std::size_t host) { return dist::concat("10.213.77.", host + 1); }

  /// Sets `made` to false without the necessary privileges.
  TwoHosts()
      : holders_(2, [&](std::size_t host) {
          const std::string name = dist::concat("dist-host-", host);
          const bool entered = unshare(CLONE_NEWNET | CLONE_NEWUTS) == 0 && sethostname(name.c_str(), name.size()) == 0;
          if (write(says_[1].get(), entered ? "+" : "-", 1) != 1) return 1;
          for (;;) pause();
        }) {
    made = are_entered() && on(0, dist::concat("link add dist0 type veth peer name dist0 netns ", holders_[1]));
    for (const std::size_t host : {0U, 1U})
      made = made && on(host, dist::concat("addr add ", address(host), "/24 dev dist0")) &&
             on(host, "link set lo up") && on(host, "link set dist0 up");
  }

  /// Moves this thread, and threads that it starts later, to a host.
  void enter(std::size_t host) const { enter_host_of(holders_[host]); }
  /// Moves a thread of another process to a host, given the process that holds the host.
  static void enter_host_of(pid_t holder) {
    for (const char* kind : {"net", "uts"}) {
      const dist::io::Descriptor space{
          open(dist::concat("/proc/", holder, "/ns/", kind).c_str(), O_RDONLY | O_CLOEXEC)};
      if (setns(space.get(), 0) != 0) _exit(98);
    }
  }
  [[nodiscard]] pid_t holder(std::size_t host) const { return holders_[host]; }
  [[nodiscard]] bool on(std::size_t host, const std::string& command) const {
    return std::system(dist::concat("nsenter -t ", holders_[host], " -n ip ", command, " 2>/dev/null").c_str()) == 0;
  }

  bool made = false;

 private:
  /// Status messages of the holders, one letter each.
  struct Pipe {
    Pipe() {
      int both[2];
      if (pipe2(both, O_CLOEXEC) == 0)
        for (const int end : {0, 1}) ends[end].reset(both[end]);
    }
    const dist::io::Descriptor& operator[](std::size_t end) const { return ends[end]; }
    dist::io::Descriptor ends[2];
  };

  [[nodiscard]] bool are_entered() const {
    std::string said;
    for (pollfd one{says_[0].get(), POLLIN, 0}; said.size() < 2 && poll(&one, 1, 2000) == 1;) {
      char letter = '-';
      if (read(says_[0].get(), &letter, 1) != 1) break;
      said += letter;
    }
    return said == "++";
  }

  const Pipe says_;
  Processes holders_;
};

}  // namespace support
