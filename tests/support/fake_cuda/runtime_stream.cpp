#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "call.hpp"
#include "counts.hpp"
#include "handles.hpp"
#include "machine.hpp"

using namespace fake_cuda;

namespace {

/// Invalidates a capture because of a wait, which a graph cannot contain.
cudaError_t spoil(Capture& capture) {
  capture.is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

/// Returns the time of a completed event: after the work that preceded its recording.
std::int64_t time_of(const CUevent_st& event) {
  return event.recorded == nullptr ? event.recorded_at : std::max(event.recorded_at, event.recorded->done_at);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] {
    if (flags != cudaStreamNonBlocking) refuse("a stream that waits for the legacy stream: use cudaStreamNonBlocking");
    use_context();
    *stream = handles().make_stream(chosen_device());
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&] {
    if (handles().stream(stream, "cudaStreamDestroy").capture != nullptr)
      refuse("cudaStreamDestroy of a stream of a capture that goes on");
    handles().destroy(stream);  // its work continues
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    CUstream_st& on = handles().stream(stream, "cudaStreamSynchronize");
    if (on.capture != nullptr) return spoil(*on.capture);
    ++counter().host_waits;
    wait_for(OperationRef{on.last});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&] {
    CUstream_st& on = handles().stream(stream, "cudaStreamQuery");
    if (on.capture != nullptr) return spoil(*on.capture);
    return poll(on.last) ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&] {
    if (const cudaError_t error = forbidden_by_capture(); error != cudaSuccess) return error;
    ++counter().host_waits;
    wait_for_device(chosen_device());
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&] {
    CUstream_st& on = handles().stream(stream, "cudaStreamWaitEvent");
    const CUevent_st& awaited = handles().event(event, "cudaStreamWaitEvent");
    if (on.capture == nullptr && awaited.capture != nullptr) {  // it joins the capture
      on.capture = awaited.capture;
      on.capture->streams.push_back(&on);
    } else if (on.capture != awaited.capture && (awaited.capture != nullptr || awaited.recorded != nullptr)) {
      on.capture->is_invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (awaited.recorded == nullptr) return cudaSuccess;
    OperationRef meeting = next_operation(on, "wait for an event");
    meeting->is_meeting = true;
    meeting->before.push_back(awaited.recorded);
    put_on(on, std::move(meeting));
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&] {
    CUstream_st& on = handles().stream(stream, "cudaLaunchHostFunc");
    OperationRef operation = next_operation(on, "host function");
    operation->reach = Reach::none;
    operation->work = std::make_shared<const std::function<void()>>([function, data] { function(data); });
    put_on(on, std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] {
    use_context();
    *event = handles().make_event(chosen_device(), (flags & cudaEventDisableTiming) == 0);
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&] {
    static_cast<void>(handles().event(event, "cudaEventDestroy"));
    handles().destroy(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] {
    const CUstream_st& on = handles().stream(stream, "cudaEventRecord");
    CUevent_st& recorded = handles().event(event, "cudaEventRecord");
    if (recorded.device != on.device) return cudaErrorInvalidResourceHandle;
    recorded.recorded = on.capture != nullptr ? on.last_captured : on.last;
    recorded.recorded_at = gpu_time();
    recorded.capture = on.capture;
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    const CUevent_st& awaited = handles().event(event, "cudaEventSynchronize");
    if (awaited.capture != nullptr) return spoil(*awaited.capture);
    ++counter().host_waits;
    wait_for(OperationRef{awaited.recorded});
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] {
    const CUevent_st& awaited = handles().event(event, "cudaEventQuery");
    if (awaited.capture != nullptr) return spoil(*awaited.capture);
    return poll(OperationRef{awaited.recorded}) ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] {
    const CUevent_st& first = handles().event(start, "cudaEventElapsedTime");
    const CUevent_st& last = handles().event(end, "cudaEventElapsedTime");
    for (const CUevent_st* const event : {&first, &last}) {
      if (event->capture != nullptr) {
        event->capture->is_invalid = true;
        return cudaErrorCapturedEvent;
      }
      if (!event->has_time || event->recorded_at == 0) return cudaErrorInvalidResourceHandle;
    }
    if (first.device != last.device) return cudaErrorInvalidResourceHandle;
    if (!poll(first.recorded) || !poll(last.recorded)) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(static_cast<double>(time_of(last) - time_of(first)) * 1e-6);
    return cudaSuccess;
  });
}

}  // extern "C"
