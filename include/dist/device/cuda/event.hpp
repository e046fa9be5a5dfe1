#pragma once

#include <cstdint>
#include <utility>

#include <dist/core/duration.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>

namespace dist::cuda {

/// A point in the work of a stream, for which others wait. It is over until it is recorded; it measures no time.
class Event {
 public:
  explicit Event(int device) : Event(device, cudaEventDisableTiming) {}
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) forget(cudaEventDestroy(event_));
  }

  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

  /// What was put on `stream`, which is of this event's device, until now.
  void record(StreamRef stream) { DIST_CUDA_CHECK(cudaEventRecord(event_, stream.get())); }
  /// What is put on `stream` from now on comes after it. The host does not wait.
  void precede(StreamRef stream) const { DIST_CUDA_CHECK(cudaStreamWaitEvent(stream.get(), event_, 0)); }
  /// Whether it is over.
  [[nodiscard]] bool is_over() const {
    const cudaError_t answer = cudaEventQuery(event_);
    if (answer == cudaErrorNotReady) return false;
    cuda::check(answer, "cudaEventQuery(event_)");
    return true;
  }

 protected:
  Event(int device, unsigned flags) {
    const SelectedDevice selected{device};
    DIST_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// An event of which the GPU notes when it was over.
class TimedEvent : public Event {
 public:
  explicit TimedEvent(int device) : Event(device, cudaEventDefault) {}

  /// How much later it was than `earlier`, an event of the same device; both were recorded and are over.
  [[nodiscard]] std::chrono::nanoseconds since(const TimedEvent& earlier) const {
    float milliseconds = 0;
    DIST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.get(), get()));
    return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6)};
  }
};

}  // namespace dist::cuda
