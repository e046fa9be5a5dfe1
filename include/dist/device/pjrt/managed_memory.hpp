#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/pjrt/buffer.hpp>
#include <dist/device/pjrt/client.hpp>

namespace dist::pjrt {

/// The memory of variables for XLA programs: a host region per replica, and for each slice that programs use, buffers
/// on the replica's device. Either the host or the device has the current elements. Requesting an address copies them
/// to the host. The host may write there, so the next program copies them to the device again. Variables that only
/// programs use stay on the devices.
///
/// The data at an address is as of the call that returned it: programs that write the slice do not update it. If a
/// program or transfer fails, the next request for an address throws, and the host keeps its previous data.
class ManagedMemory {
 public:
  /// Memory for replicas on these devices of the process's client. Throws OutOfMemory, and the errors of
  /// process_client.
  explicit ManagedMemory(std::span<const std::size_t> devices)
      : client_(process_client()),
        devices_(devices.begin(), devices.end()),
        host_(devices),
        of_replicas_(devices.size()) {}

  /// The client of the devices.
  [[nodiscard]] const Client& client() const noexcept { return client_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return host_.replicas(); }

  /// Copies the current elements of a slice to the host, and returns their address. Throws the errors of transfers.
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const {
    if (of_replicas_[replica].count.load(std::memory_order_acquire) != 0) bring_home(of_replicas_[replica], offset);
    return host_.at(replica, offset);
  }

  [[nodiscard]] std::size_t allocate(std::size_t bytes) { return host_.allocate(bytes); }
  void release(std::size_t offset, std::size_t bytes) noexcept;

  /// A part of a slice that is one array in programs: its offset in the slice in bytes, and its shape.
  struct Part {
    std::size_t offset;  ///< in bytes
    Shape shape;         ///< shape of the array
    friend bool operator==(const Part&, const Part&) = default;
  };

 private:
  struct Slice;

 public:
  /// Parts of a slice that programs use, on one replica. If other programs use other parts, the slice is copied to the
  /// host in between.
  class Resident {
   public:
    /// Appends the parts' buffers on the device, as arguments of a program. Throws InvalidArgument if the slice was
    /// released, and the errors of transfers.
    void on_device(std::vector<const Buffer*>& parts);
    /// Sets the new elements of one part, computed by a program.
    void replace(std::size_t part, Buffer newest);

   private:
    friend ManagedMemory;

    struct Held {
      Part part;
      std::optional<Buffer> buffer = {};
      bool is_newer = false;  // than the host's data
    };

    template <class T>
    Resident(std::type_identity<T>, ManagedMemory& memory, Slice& slice, std::size_t replica, std::size_t offset,
             std::span<const Part> parts, std::string name)
        : memory_(&memory),
          slice_(&slice),
          replica_(replica),
          home_(memory.host_.at(replica, offset)),
          name_(std::move(name)),
          start_upload_([](const Client& client, std::size_t device, const std::byte* home, const Shape& of) {
            return start_upload(client, device, TensorView<const T>{reinterpret_cast<const T*>(home), of});
          }),
          start_download_([](const Buffer& buffer, std::byte* home, const Shape& of) {
            return buffer.start_download(TensorView<T>{reinterpret_cast<T*>(home), of});
          }) {
      for (const Part& part : parts) parts_.push_back({part});
    }

    [[nodiscard]] bool has(std::span<const Part> parts) const;
    void come_home();

    ManagedMemory* memory_;
    Slice* slice_;  // null if it was released
    std::size_t replica_;
    std::byte* home_;
    std::string name_;
    std::vector<Held> parts_;
    Upload (*start_upload_)(const Client&, std::size_t, const std::byte*, const Shape&);
    Event (*start_download_)(const Buffer&, std::byte*, const Shape&);
  };

  /// Returns parts of a slice of elements of type T on one replica, for programs. `name` is the variable's name, for
  /// errors.
  template <class T>
  [[nodiscard]] std::shared_ptr<Resident> resident(std::size_t replica, std::size_t offset, std::span<const Part> parts,
                                                   std::string name) {
    OfReplica& mine = of_replicas_[replica];
    const std::lock_guard lock{mine.mutex};
    const auto [place, is_new] = mine.slices.try_emplace(offset);
    if (is_new) ++mine.count;
    Slice& slice = place->second;
    for (const auto& known : slice.residents)
      if (known->has(parts)) return known;
    return slice.residents.emplace_back(
        new Resident{std::type_identity<T>{}, *this, slice, replica, offset, parts, std::move(name)});
  }

 private:
  /// The uses of a slice by programs, and the current one on the device.
  struct Slice {
    std::vector<std::shared_ptr<Resident>> residents = {};
    Resident* current = nullptr;

    void come_home() {
      if (Resident* const last = std::exchange(current, nullptr); last != nullptr) last->come_home();
    }
  };
  struct OfReplica {
    std::mutex mutex;
    std::map<std::size_t, Slice> slices;  // used by programs, by offset
    std::atomic<std::size_t> count{0};    // their number, to avoid the lock if it is 0
  };

  /// Copies the current elements of a slice to the host and drops the device buffers.
  static void bring_home(OfReplica& of_replica, std::size_t offset);

  Client client_;
  std::vector<std::size_t> devices_;
  Arena host_;
  mutable std::deque<OfReplica> of_replicas_;
};

}  // namespace dist::pjrt

#ifndef DIST_COMPILED
#include <dist/device/pjrt/managed_memory.ipp>
#endif
