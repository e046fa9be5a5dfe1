/// A plugin of PJRT without devices that compute (plugin.cpp), with chips of two cores. These values of ClientOptions, all of
/// them std::int64_t, say what its clients do:
/// - devices (4): of each process; more_devices_of_the_last (0);
/// - coordinates (1): whether it says where chips are;
/// - process (node_id): the number that the client says it has;
/// - timeout_ms (60,000): of its waits for another process;
/// - put_for (node_id): the process as which it tells the others of its devices;
/// - other_error (0): whether it fails for a reason of its own after a wait in vain.
///
/// With num_nodes, node_id and callbacks it puts the number of its devices as "devices/0" and gets those of all processes; a
/// client's version has what it got. DIST_FAKE_PJRT_MAJOR_VERSION and DIST_FAKE_PJRT_STRUCT_SIZE are what its table of functions
/// says of itself.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace fake_pjrt {

/// Its shared library.
inline std::string plugin() {
  const char* const path = std::getenv("DIST_FAKE_PJRT_PLUGIN");
  REQUIRE(path != nullptr);
  return path;
}

}  // namespace fake_pjrt
