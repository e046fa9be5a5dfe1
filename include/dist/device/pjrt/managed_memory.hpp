#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/pjrt/buffer.hpp>
#include <dist/device/pjrt/process_client.hpp>

namespace dist::pjrt {

/// The memory of variables with which programs of XLA compute: a region of the host for each replica, and for each slice
/// that a program uses buffers on the replica's device. One of the two has the newest elements. Who asks for an address
/// has them brought to the host, and as they may be written there, the next program takes them from the host again. So code
/// of the host finds every variable where it expects it, and what only programs use stays on the devices.
///
/// What lies at an address is as old as the call that gave it: a program that writes the slice does not write there.
class ManagedMemory {
 public:
  /// For replicas on these devices of the process's client. Throws OutOfMemory, and what process_client throws.
  explicit ManagedMemory(std::span<const std::size_t> devices)
      : client_(process_client()), devices_(devices.begin(), devices.end()), host_(devices), slices_(devices.size()) {}

  [[nodiscard]] const Client& client() const noexcept { return client_; }
  /// The device of each replica, by number.
  [[nodiscard]] std::span<const std::size_t> devices() const noexcept { return devices_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return host_.replicas(); }

  /// The address of a slice in a replica's region, where the newest elements are then. Throws what a transfer throws.
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const {
    if (count_.load(std::memory_order_acquire) != 0) bring_home(replica, offset);
    return host_.at(replica, offset);
  }

  [[nodiscard]] std::size_t allocate(std::size_t bytes) { return host_.allocate(bytes); }
  void release(std::size_t offset, std::size_t bytes) noexcept;

  /// Elements of a slice that are one array in programs: where they begin in the slice, in bytes, and the array's shape.
  struct Part {
    std::size_t offset;
    Shape shape;
    friend bool operator==(const Part&, const Part&) = default;
  };

 private:
  struct Slice;

 public:
  /// Parts of a slice that programs use, on one replica. Other programs may use other parts of it; then it comes home between
  /// them.
  class Resident {
   public:
    /// Appends the parts on the replica's device, for a program. Throws what a transfer throws.
    void on_device(std::vector<const Buffer*>& parts);
    /// A program that was given the parts has computed new elements of one.
    void replace(std::size_t part, Buffer newest);

   private:
    friend ManagedMemory;

    struct Held {
      Part part;
      std::optional<Buffer> buffer = {};
      bool is_newer = false;  // than what the host has
    };

    template <class T>
    Resident(std::type_identity<T>, ManagedMemory& memory, Slice& slice, std::size_t replica, std::size_t offset,
             std::span<const Part> parts)
        : memory_(&memory),
          slice_(&slice),
          device_(memory.devices_[replica]),
          home_(memory.host_.at(replica, offset)),
          upload_([](const Client& client, std::size_t device, const std::byte* home, const Shape& of) {
            return upload(client, device, TensorView<const T>{reinterpret_cast<const T*>(home), of});
          }),
          start_download_([](const Buffer& buffer, std::byte* home, const Shape& of) {
            return buffer.start_download(TensorView<T>{reinterpret_cast<T*>(home), of});
          }) {
      for (const Part& part : parts) parts_.push_back({part});
    }

    [[nodiscard]] bool has(std::span<const Part> parts) const;
    void come_home();

    ManagedMemory* memory_;
    Slice* slice_;
    std::size_t device_;
    std::byte* home_;
    std::vector<Held> parts_;
    Buffer (*upload_)(const Client&, std::size_t, const std::byte*, const Shape&);
    Event (*start_download_)(const Buffer&, std::byte*, const Shape&);
  };

  /// Parts of a slice of elements of type T, for programs, on one replica. Lives as long as the slice.
  template <class T>
  [[nodiscard]] Resident& resident(std::size_t replica, std::size_t offset, std::span<const Part> parts) {
    const std::lock_guard lock{mutex_};
    const auto [place, is_new] = slices_[replica].try_emplace(offset);
    if (is_new) ++count_;
    Slice& slice = place->second;
    for (Resident& known : slice.residents)
      if (known.has(parts)) return known;
    return slice.residents.emplace_back(Resident{std::type_identity<T>{}, *this, slice, replica, offset, parts});
  }

 private:
  /// What programs use of a slice, and who has it on the device.
  struct Slice {
    std::deque<Resident> residents = {};
    Resident* current = nullptr;

    void come_home() {
      if (current != nullptr) current->come_home();
      current = nullptr;
    }
  };

  /// Has the newest elements of a slice at home, for good.
  void bring_home(std::size_t replica, std::size_t offset) const;

  Client client_;
  std::vector<std::size_t> devices_;
  Arena host_;
  mutable std::mutex mutex_;
  mutable std::vector<std::map<std::size_t, Slice>> slices_;  // that programs use, of each replica, by offset
  std::atomic<std::size_t> count_{0};                         // of slices, so that who finds none needs no lock
};

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/managed_memory.ipp>
#endif
