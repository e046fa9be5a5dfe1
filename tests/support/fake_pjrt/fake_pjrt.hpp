/// A fake PJRT plugin (plugin.cpp), whose devices do not compute and are on chips of two cores. Options in
/// ClientOptions, all std::int64_t:
/// - devices (4): devices per process; more_devices_of_the_last (0): additional devices of the last process;
/// - coordinates (1): reports the coordinates of chips;
/// - process (node_id): the process number that the client reports;
/// - timeout_ms (60,000): timeout of waits for other processes;
/// - put_for (node_id): the process for which it publishes its devices;
/// - other_error (0): fails with an unrelated error after a timeout.
///
/// With num_nodes, node_id and callbacks, it publishes the number of its devices as "devices/0" etc. and reads the
/// numbers of all processes; a client's version contains them. DIST_FAKE_PJRT_MAJOR_VERSION and
/// DIST_FAKE_PJRT_STRUCT_SIZE set the version and size of its function table.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace fake_pjrt {

inline std::string plugin() {
  const char* const path = std::getenv("DIST_FAKE_PJRT_PLUGIN");
  REQUIRE(path != nullptr);
  return path;
}

}  // namespace fake_pjrt
