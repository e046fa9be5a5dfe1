#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/client.hpp>

namespace dist::pjrt {

/// A transfer or execution in progress: a Future. Destroying the handle does not cancel it.
class Event {
 public:
  /// Takes ownership of an event of the client's plugin. `what` describes it in errors: "a transfer to device 1".
  Event(Client client, PJRT_Event* handle, std::string what)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), what_(std::move(what)) {}

  /// Waits for completion. Throws OutOfMemory or PjrtError if it failed, DeadlineExceeded after the client's timeout.
  void wait() const;
  [[nodiscard]] bool is_done() const;

 private:
  /// Sleeps until the plugin's callback. A spinning thread would occupy a core that the work may need.
  void sleep() const;
  [[nodiscard]] std::string description() const;

  Client client_;
  Owned<&PJRT_Event_Destroy_Args::event, &PJRT_Api::PJRT_Event_Destroy> handle_;
  std::string what_;
};

/// An array in device memory, with a fixed type and shape. Its content may still be computed: reads wait for it.
class Buffer {
 public:
  /// Takes ownership of a buffer of the client's plugin.
  Buffer(Client client, PJRT_Buffer* handle) : client_(std::move(client)), handle_(handle, {&client_.api()}) {}

  /// The handle, for functions of the plugin.
  [[nodiscard]] PJRT_Buffer* get() const noexcept { return handle_.get(); }
  /// The client of the buffer's plugin.
  [[nodiscard]] const Client& client() const noexcept { return client_; }

  /// Returns the extents. Throws InvalidArgument if there are too many for Shape.
  [[nodiscard]] Shape shape() const;
  /// Returns PJRT's element type.
  [[nodiscard]] PJRT_Buffer_Type type() const;
  /// True if a program has reused the memory for a result: the buffer can no longer be read.
  [[nodiscard]] bool is_donated() const;

  /// Waits until the content is computed. Throws the errors of the computation, and DeadlineExceeded.
  void wait() const { ready().wait(); }
  [[nodiscard]] bool is_done() const { return ready().is_done(); }

  /// Starts to copy the elements to `target`. Throws ShapeMismatch or InvalidArgument if its shape or type differs,
  /// InvalidArgument if the buffer was donated.
  template <class T>
  [[nodiscard]] Event start_download(TensorView<T> target) const {
    require_readable(buffer_type<T>, dtype_name<T>, target.shape());
    std::array<std::int64_t, Shape::max_rank> minor_to_major{};
    const std::size_t rank = target.shape().rank();
    for (std::size_t axis = 0; axis < rank; ++axis) minor_to_major[axis] = static_cast<std::int64_t>(rank - 1 - axis);
    auto row_major = DIST_PJRT_ARGUMENTS(PJRT_Buffer_MemoryLayout);
    row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    row_major.tiled = DIST_PJRT_ARGUMENTS(PJRT_Buffer_MemoryLayout_Tiled);
    row_major.tiled.minor_to_major = minor_to_major.data();
    row_major.tiled.minor_to_major_size = rank;
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_ToHostBuffer_Args);
    arguments.src = handle_.get();
    arguments.host_layout = &row_major;
    // For a null address, PJRT would only return the size.
    arguments.dst = target.size() == 0 ? static_cast<void*>(&row_major) : target.data();
    arguments.dst_size = target.size() * sizeof(T);
    client_.api().call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, arguments, [] { return "to copy a buffer to the host"; });
    return {client_, arguments.event, "a transfer to the host"};
  }
  /// Waits for the elements and returns a copy.
  template <class T>
  [[nodiscard]] Tensor<T> download() const {
    Tensor<T> elements{shape()};
    start_download(elements.view()).wait();
    return elements;
  }

 private:
  [[nodiscard]] Event ready() const;

  void require_readable(PJRT_Buffer_Type wanted, std::string_view name, const Shape& target) const;

  Client client_;
  Owned<&PJRT_Buffer_Destroy_Args::buffer, &PJRT_Api::PJRT_Buffer_Destroy> handle_;
};

/// A buffer, and the transfer that fills it.
struct Upload {
  Buffer buffer;   ///< usable in programs at once
  Event transfer;  ///< done when the elements have arrived
};

/// Starts to copy `elements` to the client's device `device`. They must stay unchanged until the transfer is done;
/// programs can use the buffer before that. Throws InvalidArgument, OutOfMemory and PjrtError.
template <class T>
[[nodiscard]] Upload start_upload(const Client& client, std::size_t device, TensorView<const T> elements) {
  std::array<std::int64_t, Shape::max_rank> extents{};
  const std::size_t rank = elements.shape().rank();
  for (std::size_t axis = 0; axis < rank; ++axis) extents[axis] = static_cast<std::int64_t>(elements.shape()[axis]);
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args);
  arguments.client = client.get();
  arguments.data = elements.data();
  arguments.type = buffer_type<T>;
  arguments.dims = extents.data();
  arguments.num_dims = rank;
  arguments.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  arguments.device = client.device(device).handle;
  client.api().call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, arguments,
                    [&] { return concat("to copy ", elements.shape(), " ", dtype_name<T>, " to device ", device); });
  return {Buffer{client, arguments.buffer},
          Event{client, arguments.done_with_host_buffer, concat("a transfer to device ", device)}};
}
/// Copies `elements` to device `device`, and waits until the plugin has read them.
template <class T>
[[nodiscard]] Buffer upload(const Client& client, std::size_t device, TensorView<const T> elements) {
  Upload started = start_upload(client, device, elements);
  started.transfer.wait();
  return std::move(started.buffer);
}
/// Copies a tensor to device `device`, and waits until the plugin has read it.
template <class T>
[[nodiscard]] Buffer upload(const Client& client, std::size_t device, const Tensor<T>& elements) {
  return upload(client, device, elements.view());
}

}  // namespace dist::pjrt

#ifndef DIST_COMPILED
#include <dist/device/pjrt/buffer.ipp>
#endif
