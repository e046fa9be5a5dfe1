/// The objects for the runtime's opaque handles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "operation.hpp"

namespace fake_cuda {

/// A capture in progress: work on its streams becomes a graph.
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
  fake_cuda::OperationRef last;
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

/// Streams and events that exist.
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

  /// Return the handle's object. Terminate the process for invalid handles, and for the legacy stream, which waits for
  /// all others.
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

/// Submits an operation to a stream, or adds it to the graph that is captured there.
void put_on(CUstream_st& stream, OperationRef operation);

/// Returns a new operation of `stream` after its earlier ones.
[[nodiscard]] OperationRef next_operation(CUstream_st& stream, std::string_view name);

/// Submits work of a fake library whose ranks wait for each other: `work`, which may access the same memory as kernels,
/// runs once `ready` returns true.
void put_for_library(cudaStream_t stream, std::string_view name, std::function<void()> work,
                     std::function<bool()> ready);

/// The GPU that the calling thread has selected, by its visible number.
[[nodiscard]] int& chosen_device() noexcept;
/// Returns the GPUs of the machine that the process sees, in the order of their visible numbers.
[[nodiscard]] std::vector<int> visible_devices();
/// Records that the selected GPU of the calling thread has a context.
void use_context();

/// Returns the result of a call that captures forbid: if a capture forbids it in this thread, invalidates it and
/// returns its error.
[[nodiscard]] cudaError_t forbidden_by_capture();

/// Number of graphs and graph instances.
[[nodiscard]] std::size_t& live_graphs() noexcept;
void reset_captures();

}  // namespace fake_cuda
