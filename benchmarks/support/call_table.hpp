/// Calls of a server in another process, timed in turns.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <dist/io/descriptor.hpp>
#include <dist/net/endpoint.hpp>

#include "clock.hpp"
#include "distribution.hpp"

namespace bench {

/// Ends the program unless `holds`; `what` failed, for the reason that errno says.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

/// A port of this machine that was free a moment ago.
inline dist::net::Endpoint free_endpoint() {
  dist::net::SocketAddress address = dist::net::resolve({"127.0.0.1", "0"}).addresses.front();
  const dist::io::Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  must(bind(socket.get(), address.get(), address.size) == 0, "bind");
  getsockname(socket.get(), address.get(), &address.size);
  return {"127.0.0.1", std::to_string(ntohs(reinterpret_cast<const sockaddr_in*>(address.get())->sin_port))};
}

struct CallRow {
  const char* name;
  int repetitions;  ///< in a round
  std::function<void()> work;
  double calls = 1;  ///< in one repetition
  std::vector<double> microseconds = {};
};

/// Prints how long a call of each row takes, over rounds in which the rows take turns.
inline void print_calls(std::vector<CallRow> rows, int rounds) {
  for (int round = -1; round < rounds; ++round)  // the first warms up
    for (CallRow& row : rows) {
      const double start = seconds();
      for (int i = 0; i < row.repetitions; ++i) row.work();
      const double took = (seconds() - start) * 1e6 / (row.repetitions * row.calls);
      if (round >= 0) row.microseconds.push_back(took);
    }
  std::printf("microseconds a call, %d rounds                  median        p10        p90\n", rounds);
  for (const CallRow& row : rows) {
    const Distribution spread = distribution(row.microseconds);
    std::printf("%-40s %12.2f %10.2f %10.2f\n", row.name, spread.median, spread.tenth, spread.ninetieth);
  }
}

}  // namespace bench
