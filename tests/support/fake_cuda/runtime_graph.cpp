#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "counts.hpp"
#include "handles.hpp"

namespace fake_cuda {
namespace {

std::vector<std::unique_ptr<Capture>>& captures() {
  static std::vector<std::unique_ptr<Capture>> all;
  return all;
}

/// True if all work of the other streams is joined into the stream where the capture began.
bool is_joined(const Capture& capture) {
  std::set<const Operation*> reached;
  std::vector<const Operation*> open;
  if (capture.origin->last_captured != nullptr) open.push_back(capture.origin->last_captured.get());
  while (!open.empty()) {
    const Operation* const each = open.back();
    open.pop_back();
    if (!reached.insert(each).second) continue;
    for (const OperationRef& before : each->before) open.push_back(before.get());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const CUstream_st* stream) {
    return stream->last_captured == nullptr || reached.contains(stream->last_captured.get());
  });
}

/// Returns a launch of a captured operation, without dependencies.
OperationRef launch_of(const OperationRef& captured) {
  auto operation = std::make_shared<Operation>();
  operation->name = captured->name;
  operation->device = captured->device;
  operation->stream = captured->stream;
  operation->reach = captured->reach;
  operation->work = captured->work;
  operation->addresses = captured->addresses;
  operation->is_meeting = captured->is_meeting;
  operation->captured = captured;
  return operation;
}

/// The position of an operation in a graph: the number of its stream, and its index there.
using Position = std::pair<int, std::size_t>;
/// Returns the operation and the dependencies at each position.
std::map<Position, std::pair<std::string, std::set<Position>>> plan_of(const std::vector<OperationRef>& nodes) {
  std::map<const Operation*, Position> positions;
  std::map<int, std::size_t> of_stream;
  for (const OperationRef& node : nodes) positions[node.get()] = {node->stream, of_stream[node->stream]++};
  std::map<Position, std::pair<std::string, std::set<Position>>> plan;
  for (const OperationRef& node : nodes) {
    auto& [name, before] = plan[positions[node.get()]];
    name = node->name;
    for (const OperationRef& each : node->before)
      if (const auto found = positions.find(each.get()); found != positions.end()) before.insert(found->second);
  }
  return plan;
}

}  // namespace

cudaError_t forbidden_by_capture() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : captures()) {
    const bool forbids =
        capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    if (!forbids) continue;
    capture->is_invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

void reset_captures() { captures().clear(); }

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    CUstream_st& on = handles().stream(stream, "cudaStreamBeginCapture");
    if (on.capture != nullptr) return cudaErrorIllegalState;
    captures().push_back(std::make_unique<Capture>());
    Capture& capture = *captures().back();
    capture.origin = &on;
    capture.mode = mode;
    capture.thread = std::this_thread::get_id();
    capture.streams.push_back(&on);
    on.capture = &capture;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] {
    const CUstream_st& on = handles().stream(stream, "cudaStreamIsCapturing");
    *status = on.capture == nullptr    ? cudaStreamCaptureStatusNone
              : on.capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&] {
    *graph = nullptr;
    const CUstream_st& on = handles().stream(stream, "cudaStreamEndCapture");
    if (on.capture == nullptr || on.capture->origin != &on) return cudaErrorIllegalState;
    Capture& capture = *on.capture;
    if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != std::this_thread::get_id()) {
      capture.is_invalid = true;
      return cudaErrorStreamCaptureWrongThread;
    }
    const bool joined = is_joined(capture);
    const bool valid = !capture.is_invalid;
    if (valid && joined) {
      *graph = new CUgraph_st{std::move(capture.nodes)};
      ++live_graphs();
    }
    for (CUstream_st* const each : capture.streams) {
      each->capture = nullptr;
      each->last_captured = nullptr;
    }
    for (CUevent_st* const event : handles().events())
      if (event->capture == &capture) {
        event->capture = nullptr;
        event->recorded = nullptr;
        event->recorded_at = 0;
      }
    std::erase_if(captures(), [&](const auto& each) { return each.get() == &capture; });
    return !valid ? cudaErrorStreamCaptureInvalidated : !joined ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", [&] {
    if (nodes != nullptr) return cudaErrorInvalidValue;  // only counting is supported
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&] {
    *instance = new CUgraphExec_st{graph->nodes, nullptr};
    ++live_graphs();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  return call("cudaGraphExecUpdate", [&] {
    const bool fits = plan_of(instance->nodes) == plan_of(graph->nodes);
    *result = {};
    result->result = fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    if (!fits) return cudaErrorGraphExecUpdateFailure;
    instance->nodes = graph->nodes;  // used by later launches
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&] {
    delete graph;
    --live_graphs();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  return call("cudaGraphExecDestroy", [&] {
    delete instance;
    --live_graphs();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    CUstream_st& on = handles().stream(stream, "cudaGraphLaunch");
    if (on.capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    ++counter().graph_launches;
    std::map<const Operation*, OperationRef> launched;
    OperationRef end = next_operation(on, "end of a graph");
    end->is_meeting = true;
    for (const OperationRef& node : instance->nodes) {
      OperationRef operation = launch_of(node);
      for (const OperationRef& before : node->before)
        if (const auto found = launched.find(before.get()); found != launched.end())
          operation->before.push_back(found->second);
      if (operation->before.empty()) {
        if (on.last != nullptr) operation->before.push_back(on.last);
        if (instance->last_launch != nullptr) operation->before.push_back(instance->last_launch);
      }
      end->before.push_back(operation);
      launched[node.get()] = operation;
      put(operation);
    }
    instance->last_launch = end;
    put_on(on, std::move(end));
    return cudaSuccess;
  });
}

}  // extern "C"
