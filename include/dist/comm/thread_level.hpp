#pragma once

namespace dist {

/// Which threads of a process may use its network, from fewest to most.
enum class ThreadLevel : unsigned char {
  single,      ///< the process has one thread
  funneled,    ///< the thread that opened the network
  serialized,  ///< any, one at a time
  multiple     ///< any
};

}  // namespace dist
