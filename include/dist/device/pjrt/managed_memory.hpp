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

/// The memory of variables with which programs of XLA compute: a region of the host for each replica, and for each slice
/// that a program uses buffers on the replica's device. One of the two has the newest elements. Who asks for an address
/// has them brought to the host, and as they may be written there, the next program takes them from the host again. So code
/// of the host finds every variable where it expects it, and what only programs use stays on the devices.
///
/// What lies at an address is as old as the call that gave it: a program that writes the slice does not write there. Where a
/// program or a transfer has failed, who asks first learns it, and from then on the host has what it had before.
class ManagedMemory {
 public:
  /// For replicas on these devices of the process's client. Throws OutOfMemory, and what process_client throws.
  explicit ManagedMemory(std::span<const std::size_t> devices)
      : client_(process_client()),
        devices_(devices.begin(), devices.end()),
        host_(devices),
        of_replicas_(devices.size()) {}

  [[nodiscard]] const Client& client() const noexcept { return client_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return host_.replicas(); }

  /// The address of a slice in a replica's region, where the newest elements are then. Throws what a transfer throws.
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const {
    if (of_replicas_[replica].count.load(std::memory_order_acquire) != 0) bring_home(of_replicas_[replica], offset);
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
    /// Appends the parts on the replica's device, for a program. Throws InvalidArgument where the slice was released, and what
    /// a transfer throws.
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
    Slice* slice_;  // none where it was released
    std::size_t replica_;
    std::byte* home_;
    std::string name_;
    std::vector<Held> parts_;
    Upload (*start_upload_)(const Client&, std::size_t, const std::byte*, const Shape&);
    Event (*start_download_)(const Buffer&, std::byte*, const Shape&);
  };

  /// Parts of a slice of elements of type T, for programs, on one replica; `name` is that of the variable, for errors.
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
  /// What programs use of a slice, and who has it on the device.
  struct Slice {
    std::vector<std::shared_ptr<Resident>> residents = {};
    Resident* current = nullptr;

    void come_home() {
      if (Resident* const last = std::exchange(current, nullptr); last != nullptr) last->come_home();
    }
  };
  struct OfReplica {
    std::mutex mutex;
    std::map<std::size_t, Slice> slices;  // that programs use, by offset
    std::atomic<std::size_t> count{0};    // of these, so that who finds none needs no lock
  };

  /// Has the newest elements of a slice at home, for good.
  static void bring_home(OfReplica& of_replica, std::size_t offset);

  Client client_;
  std::vector<std::size_t> devices_;
  Arena host_;
  mutable std::deque<OfReplica> of_replicas_;
};

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/managed_memory.ipp>
#endif
