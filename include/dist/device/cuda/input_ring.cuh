#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/memory.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// A ring of input slots for the replica of a queue. Each slot has pinned memory and GPU memory of equal size; a
/// separate stream copies between them while the replica computes. Not thread-safe. The queue must outlive all calls
/// except the destructor.
class InputRing {
 public:
  /// Allocates `slots` slots, one of which the replica uses: with a single slot the host waits for each step.
  InputRing(const Queue& queue, std::size_t slots)
      : queue_(queue), copies_(queue.stream().device()), timeout_(queue.timeout()), number_(queue.number()) {
    DIST_EXPECT(slots > 0);
    for (std::size_t slot = 0; slot < slots; ++slot) slots_.emplace_back(queue.stream().device());
  }
  InputRing(const InputRing&) = delete;
  InputRing& operator=(const InputRing&) = delete;
  /// Leaks the memory of copies and steps that do not finish.
  ~InputRing() {
    for (Slot& slot : slots_) {
      try {  // without `queue_`, which may be destroyed, like its watch
        for (const Event* event : {&slot.copied, &slot.used})
          cuda::await([&] { return event->is_over(); }, [this] { return describe(); }, timeout_);
      } catch (const DeadlineExceeded&) {
        leave_behind(std::move(slot));
      } catch (const Error&) {
      }
    }
  }

  /// Returns pinned memory for the next batch of `bytes` bytes, after the step that last used the slot is done. Throws
  /// DeadlineExceeded and OutOfMemory.
  [[nodiscard]] std::byte* prepare(std::size_t bytes) {
    Slot& slot = slots_[next_];
    for (const Event* event : {&slot.copied, &slot.used})
      queue_.await([&] { return event->is_over(); }, [this] { return describe(); });
    if (bytes > slot.host.size()) {
      slot.device = DeviceBuffer{copies_.ref().device(), bytes};
      slot.host = PinnedBuffer{bytes};
    }
    slot.bytes = bytes;
    return slot.host.data();
  }
  /// The GPU address of the prepared batch.
  [[nodiscard]] std::byte* destination() const noexcept { return slots_[next_].device.data(); }

  /// Copies the prepared memory to the GPU; later work on `queue` runs after the copy.
  void upload(const Queue& queue) {
    Slot& slot = slots_[next_];
    if (slot.bytes > 0) {
      const StreamRef stream = copies_.ref();
      cuda::check(
          cudaMemcpyAsync(slot.device.data(), slot.host.data(), slot.bytes, cudaMemcpyHostToDevice, stream.get()),
          "cudaMemcpyAsync to the GPU", stream.device());
      note_work(stream.device(), copy_work);
    }
    slot.copied.record(copies_.ref());
    slot.copied.precede(queue.stream());
    is_lent_ = true;
  }

  /// Releases the batch after all earlier work on `queue`. Its memory is reused when that work is done. At contract
  /// level 2, all its bits are set before.
  void retire(const Queue& queue) {
    if (!std::exchange(is_lent_, false)) return;
    Slot& slot = slots_[next_];
    if constexpr (DIST_CONTRACT_LEVEL >= 2)
      queue.fill(
          DeviceSpan<std::uint8_t, DeviceMemory>{reinterpret_cast<std::uint8_t*>(slot.device.data()), slot.bytes},
          std::uint8_t{0xFF});
    slot.used.record(queue.stream());
    next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
  }

 private:
  struct Slot {
    explicit Slot(int number) : copied(number), used(number) {}
    DeviceBuffer device;
    PinnedBuffer host;
    std::size_t bytes = 0;
    Event copied;
    Event used;
  };

  [[nodiscard]] std::string describe() const {
    return concat("the input of queue ", number_, " of GPU ", copies_.ref().device());
  }

  Queue queue_;
  Stream copies_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  bool is_lent_ = false;
  std::chrono::nanoseconds timeout_;
  std::size_t number_;
};

}  // namespace dist::cuda
