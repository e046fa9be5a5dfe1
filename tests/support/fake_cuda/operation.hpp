#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "thread_sanitizer.hpp"

namespace fake_cuda {

struct Operation;
using OperationRef = std::shared_ptr<Operation>;

/// The GPUs whose memory an operation may touch: its own and those to which that has access, all of them, or none.
enum class Reach { peers, all, none };

/// One piece of work of a GPU.
struct Operation {
  std::string name;
  int device = 0;
  int stream = 0;  // its number
  Reach reach = Reach::peers;
  std::shared_ptr<const std::function<void()>> work;  // shared by the launches of a graph
  std::function<bool()> ready;                        // where it may have to wait for more than operations
  std::vector<const void*> addresses;                 // that it was given
  bool is_meeting = false;                            // of what is before it, and has no work
  std::vector<OperationRef> before;                   // must be done first; none once the work is done
  std::uint64_t number = 0;                           // in the order in which they were put
  std::size_t unfinished = 0;                         // of `before`
  std::vector<Operation*> after;
  bool done = false;
  std::int64_t done_at = 0;  // in nanoseconds of the scheduler's clock
  OperationRef captured;     // of which it is a launch, with those of its graph
  Moment put;                // by the host
  Moment end;                // of its work
  std::uint64_t walk = 0;    // the last that came here
};

/// "'copy' of stream 2 on GPU 1".
[[nodiscard]] std::string describe(const Operation& operation);

/// Whether it may touch memory of `device`.
[[nodiscard]] bool may_touch(const Operation& operation, int device);

/// Whether kernels of `device` reach the memory of `peer`. Returns false if they did already.
bool give_access(int device, int peer);
void reset_access();

}  // namespace fake_cuda
