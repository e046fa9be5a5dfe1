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

/// The GPUs whose memory an operation may access: its GPU and its accessible peers, all, or none.
enum class Reach { peers, all, none };

/// A unit of work of a GPU.
struct Operation {
  std::string name;
  int device = 0;
  int stream = 0;
  Reach reach = Reach::peers;
  std::shared_ptr<const std::function<void()>> work;  // shared by the launches of a graph
  std::function<bool()> ready;                        // a condition in addition to earlier operations
  std::vector<const void*> addresses;
  bool is_meeting = false;           // joins the operations in `before`, without work
  std::vector<OperationRef> before;  // dependencies; empty once the work is done
  std::uint64_t number = 0;          // in the order of submission
  std::size_t unfinished = 0;
  std::vector<Operation*> after;
  bool done = false;
  std::int64_t done_at = 0;  // in nanoseconds of the scheduler's clock
  OperationRef captured;     // the captured operation of which it is a launch
  Moment put;                // submission by the host
  Moment end;
  std::uint64_t walk = 0;  // the last walk that visited it
};

/// Formats "'copy' of stream 2 on GPU 1".
[[nodiscard]] std::string describe(const Operation& operation);

/// True if the operation may access memory of `device`.
[[nodiscard]] bool may_touch(const Operation& operation, int device);

/// Lets kernels of `device` access the memory of `peer`. Returns false if they already could.
bool give_access(int device, int peer);
void reset_access();

}  // namespace fake_cuda
