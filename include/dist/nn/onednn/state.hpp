#pragma once

#include <cstddef>

#include <dist/core/aligned_buffer.hpp>
#include <dist/nn/onednn/api.hpp>

namespace dist::nn::onednn {

/// What one replica's operations share: oneDNN's engine and stream, one scratchpad, and one memory for copies, since
/// operations run one by one.
class State {
 public:
  /// While it lives, oneDNN uses the calling thread only, because a replica has one core; afterwards the
  /// thread's number of OpenMP threads is what it was, so that the host program's own parallel loops do not
  /// notice.
  class OneThread {
   public:
    OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;
    ~OneThread() { omp_set_num_threads(before_); }

   private:
    int before_;
  };
  [[nodiscard]] OneThread enter() const { return OneThread{}; }

  [[nodiscard]] const dnnl::engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const dnnl::stream& stream() const noexcept { return stream_; }

  [[nodiscard]] void* scratchpad() noexcept { return scratchpad_.data(); }
  /// Reserves more than `bytes`: oneDNN 2.6 writes up to some vectors past the scratchpad that it asks for, in the kernel gradient
  /// of a strided convolution with a window of 1 and fewer channels than a vector has elements.
  void reserve_scratchpad(std::size_t bytes) {
    constexpr std::size_t margin = 4096;
    if (bytes + margin > scratchpad_.size()) scratchpad_ = AlignedBuffer<std::byte>(bytes + margin);
  }

  /// For numbers in a layout that a primitive chose, until the operation ends. Shared by all layers, it stays in the
  /// caches.
  [[nodiscard]] void* copy() noexcept { return copy_.data(); }
  void reserve_copy(std::size_t bytes) {
    if (bytes > copy_.size()) copy_ = AlignedBuffer<std::byte>(bytes);
  }

 private:
  dnnl::engine engine_ = translated({"the CPU engine", [] { return std::string("engine 0"); }}, [] {
    return dnnl::engine{dnnl::engine::kind::cpu, 0};
  });
  dnnl::stream stream_ =
      translated({"the CPU stream", [] { return std::string("engine 0"); }}, [this] { return dnnl::stream{engine_}; });
  AlignedBuffer<std::byte> scratchpad_;
  AlignedBuffer<std::byte> copy_;
};

}  // namespace dist::nn::onednn
