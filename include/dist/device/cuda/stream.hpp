#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// A non-owning reference to a stream: in-order work on one GPU, concurrent with other streams. Cheap to copy.
class StreamRef {
 public:
  /// Refers to `stream` of GPU `device`.
  StreamRef(int device, cudaStream_t stream) noexcept : device_(device), stream_(stream) {}
  StreamRef(int device, std::nullptr_t) = delete;  // the legacy stream, which waits for all others
  StreamRef(int device, int) = delete;

  /// The number of the GPU.
  [[nodiscard]] int device() const noexcept { return device_; }
  /// The stream, for calls of libraries.
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// True if all submitted work is done.
  [[nodiscard]] bool is_done() const {
    const cudaError_t answer = cudaStreamQuery(stream_);
    if (answer == cudaErrorNotReady) return false;
    cuda::check(answer, "cudaStreamQuery(stream_)", device_);
    return true;
  }
  /// Waits until all submitted work is done. Throws DeadlineExceeded.
  void wait(std::chrono::nanoseconds timeout = longest_wait) const {
    await([this] { return is_done(); }, [this] { return concat("a stream of GPU ", device_); }, timeout);
  }

 private:
  int device_;
  cudaStream_t stream_;
};

/// An owned non-blocking stream. Destroying it does not cancel its work.
class Stream {
 public:
  /// Creates a stream on GPU `device`. Throws CudaError.
  explicit Stream(int device) : device_(device) {
    const SelectedDevice selected{device};
    DIST_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  /// Takes ownership of a stream of `device`.
  [[nodiscard]] static Stream from_native_handle(int device, cudaStream_t stream) noexcept {
    return Stream{device, stream};
  }
  /// Takes the stream of `other`.
  Stream(Stream&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  /// Exchanges both streams.
  Stream& operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_ != nullptr) forget(cudaStreamDestroy(stream_));
  }

  /// Refers to this stream, which must outlive the reference.
  [[nodiscard]] StreamRef ref() const noexcept { return {device_, stream_}; }
  /// Transfers ownership to the caller.
  [[nodiscard]] cudaStream_t release() noexcept { return std::exchange(stream_, nullptr); }

 private:
  Stream(int device, cudaStream_t stream) noexcept : device_(device), stream_(stream) {}

  int device_;
  cudaStream_t stream_ = nullptr;
};

/// A marker in a stream for which others can wait. Complete until it is recorded; without timing.
class Event {
 public:
  /// Creates an event of GPU `device`. Throws CudaError.
  explicit Event(int device) : Event(device, cudaEventDisableTiming) {}
  /// Takes the event of `other`.
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  /// Exchanges both events.
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) forget(cudaEventDestroy(event_));
  }

  /// The event, for calls of libraries.
  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

  /// Marks all earlier work of `stream`. The stream must be on the event's device.
  void record(StreamRef stream) { DIST_CUDA_CHECK(cudaEventRecord(event_, stream.get())); }
  /// Makes later work of `stream` wait for this event. Does not block the host.
  void precede(StreamRef stream) const { DIST_CUDA_CHECK(cudaStreamWaitEvent(stream.get(), event_, 0)); }
  /// True if the marked work is done.
  [[nodiscard]] bool is_over() const {
    const cudaError_t answer = cudaEventQuery(event_);
    if (answer == cudaErrorNotReady) return false;
    cuda::check(answer, "cudaEventQuery(event_)");
    return true;
  }

 protected:
  /// Creates an event with flags of CUDA.
  Event(int device, unsigned flags) {
    const SelectedDevice selected{device};
    DIST_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// An event with a GPU timestamp.
class TimedEvent : public Event {
 public:
  /// Creates an event of GPU `device`. Throws CudaError.
  explicit TimedEvent(int device) : Event(device, cudaEventDefault) {}

  /// Returns the time since `earlier`, an event of the same device. Both must be recorded and over.
  [[nodiscard]] std::chrono::nanoseconds since(const TimedEvent& earlier) const {
    float milliseconds = 0;
    DIST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.get(), get()));
    return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6)};
  }
};

}  // namespace dist::cuda
