/// What the runtime's opaque handles point to.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "operation.hpp"

namespace fake_cuda {

/// A capture that goes on: what is put on its streams becomes a graph.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool is_invalid = false;
  std::vector<OperationRef> nodes;
  std::vector<CUstream_st*> streams;
};

}  // namespace fake_cuda

struct CUstream_st {
  int device = 0;
  int number = 0;
  fake_cuda::OperationRef last;  // that was put on it
  fake_cuda::Capture* capture = nullptr;
  fake_cuda::OperationRef last_captured;
};

struct CUevent_st {
  int device = 0;
  bool has_time = false;
  fake_cuda::OperationRef recorded;  // after which it happens
  std::int64_t recorded_at = 0;      // by the host, outside captures; 0: never
  fake_cuda::Capture* capture = nullptr;
};

struct CUgraph_st {
  std::vector<fake_cuda::OperationRef> nodes;
};

struct CUgraphExec_st {
  std::vector<fake_cuda::OperationRef> nodes;
  fake_cuda::OperationRef last_launch;  // launches of a graph do not overlap
};

namespace fake_cuda {

/// Streams and events that were made and not destroyed.
class Handles {
 public:
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() { reset(); }

  [[nodiscard]] cudaStream_t make_stream(int device);
  [[nodiscard]] cudaEvent_t make_event(int device, bool has_time);
  void destroy(cudaStream_t stream);
  void destroy(cudaEvent_t event);

  /// The handle's object. Refuses those that do not exist, and the legacy stream, which waits for all others.
  [[nodiscard]] CUstream_st& stream(cudaStream_t stream, std::string_view function) const;
  [[nodiscard]] CUevent_st& event(cudaEvent_t event, std::string_view function) const;

  [[nodiscard]] const std::vector<CUstream_st*>& streams() const noexcept { return streams_; }
  [[nodiscard]] const std::vector<CUevent_st*>& events() const noexcept { return events_; }
  void reset();

 private:
  std::vector<CUstream_st*> streams_;
  std::vector<CUevent_st*> events_;
  int made_ = 0;
};
[[nodiscard]] Handles& handles();

/// Puts an operation on a stream, or into the graph that is captured there.
void put_on(CUstream_st& stream, OperationRef operation);

/// An operation of `stream` after those that were put there.
[[nodiscard]] OperationRef next_operation(CUstream_st& stream, std::string_view name);

/// For fakes of libraries, where ranks wait for each other: `work`, which may touch what kernels may, as soon as `ready`
/// says so.
void put_for_library(cudaStream_t stream, std::string_view name, std::function<void()> work,
                     std::function<bool()> ready);

/// The GPU that the calling thread has chosen, by its visible number.
[[nodiscard]] int& chosen_device() noexcept;
/// The GPUs of the machine that the process sees, in the order of their visible numbers.
[[nodiscard]] std::vector<int> visible_devices();
/// Notes that the GPU that the calling thread has chosen has a context from now on.
void use_context();

/// What a call that is not allowed during a capture returns: the error that it invalidates captures with, if there is one
/// that forbids it in this thread.
[[nodiscard]] cudaError_t forbidden_by_capture();

/// Graphs that exist, and those instantiated.
[[nodiscard]] std::size_t& live_graphs() noexcept;
/// Forgets captures.
void reset_captures();

}  // namespace fake_cuda
