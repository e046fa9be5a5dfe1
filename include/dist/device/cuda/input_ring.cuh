#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/event.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/memory.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// Batches on their way to the replica of a queue: some slots, each of pinned memory and as much of the GPU, and a stream of
/// its own that copies from one to the other beside the replica's work. One thread at a time uses it, while no other puts
/// work on the queue, which outlives every call but the destructor.
class InputRing {
 public:
  /// For so many batches, of which one is the replica's: with one slot the host waits for every step.
  InputRing(const Queue& queue, std::size_t slots)
      : queue_(queue), copies_(queue.stream().device()), timeout_(queue.timeout()), number_(queue.number()) {
    DIST_EXPECT(slots > 0);
    for (std::size_t slot = 0; slot < slots; ++slot) slots_.emplace_back(queue.stream().device());
  }
  InputRing(const InputRing&) = delete;
  InputRing& operator=(const InputRing&) = delete;
  /// The memory of copies and steps that do not end is left to them.
  ~InputRing() {
    for (Slot& slot : slots_) {
      try {  // the queue may be gone, and who watches it
        for (const Event* event : {&slot.copied, &slot.used})
          cuda::await([&] { return event->is_over(); }, [this] { return describe(); }, timeout_);
      } catch (const DeadlineExceeded&) {
        leave_behind(std::move(slot));
      } catch (const Error&) {
      }
    }
  }

  /// Memory of the host for the next batch of so many bytes. The host waits for the step that used the slot before. Throws
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
  /// Where they will lie on the GPU.
  [[nodiscard]] std::byte* destination() const noexcept { return slots_[next_].device.data(); }

  /// What was written to the prepared memory goes to the GPU; work that is put on `queue` from now on comes after that.
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

  /// The step that uses the batch was put on `queue`. Its memory becomes that of another one when the step is done; at
  /// contract level 2 every bit of it is one until then.
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
