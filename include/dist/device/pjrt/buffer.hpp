#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/client.hpp>

namespace dist::pjrt {

/// What a device does in the background, a transfer or an execution. It models `Work`: the handle may go before it is done.
class Event {
 public:
  /// Takes over an event of the client's plugin; `what` says what it is: "a transfer to device 1".
  Event(Client client, PJRT_Event* handle, std::string what)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), what_(std::move(what)) {}

  /// Throws what went wrong, OutOfMemory or PjrtError, and DeadlineExceeded after the client's timeout.
  void wait() const;
  [[nodiscard]] bool is_done() const;

 private:
  /// Sleeps until the plugin says that it is done. A thread that spins instead takes the core that the work may need.
  void sleep() const;
  [[nodiscard]] std::string description() const;

  Client client_;
  Owned<&PJRT_Event_Destroy_Args::event, &PJRT_Api::PJRT_Event_Destroy> handle_;
  std::string what_;
};

/// An array in the memory of a device, of one type and shape for ever. What it holds may still be on its way: whoever
/// reads it waits.
class Buffer {
 public:
  /// Takes over a buffer of the client's plugin.
  Buffer(Client client, PJRT_Buffer* handle) : client_(std::move(client)), handle_(handle, {&client_.api()}) {}

  [[nodiscard]] PJRT_Buffer* get() const noexcept { return handle_.get(); }
  [[nodiscard]] const Client& client() const noexcept { return client_; }

  /// The extents. Throws InvalidArgument for more than Shape holds.
  [[nodiscard]] Shape shape() const;
  /// PJRT's name for the type of the elements.
  [[nodiscard]] PJRT_Buffer_Type type() const;
  /// A program has taken its memory for a result: nothing can be read any more.
  [[nodiscard]] bool is_donated() const;

  /// Returns when the device has computed what the buffer holds. Throws what went wrong there, and DeadlineExceeded.
  void wait() const { ready().wait(); }
  [[nodiscard]] bool is_done() const { return ready().is_done(); }

  /// Copies the elements to `target` in the background. Throws ShapeMismatch unless it has this shape, InvalidArgument
  /// unless it has this type, or where the memory was donated.
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
    // Without an address, PJRT only says how many bytes there are.
    arguments.dst = target.size() == 0 ? static_cast<void*>(&row_major) : target.data();
    arguments.dst_size = target.size() * sizeof(T);
    client_.api().call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, arguments, [] { return "to copy a buffer to the host"; });
    return {client_, arguments.event, "a transfer to the host"};
  }
  /// The elements, when they are there.
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

/// A buffer, and the copy that fills it.
struct Upload {
  Buffer buffer;
  Event transfer;
};

/// Copies `elements` to the memory of the client's device `device` in the background: they stay untouched until the
/// transfer is done, while the buffer may already be an argument of programs. Throws InvalidArgument, OutOfMemory and
/// PjrtError.
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
/// The same, and returns when the elements are no longer needed.
template <class T>
[[nodiscard]] Buffer upload(const Client& client, std::size_t device, TensorView<const T> elements) {
  Upload started = start_upload(client, device, elements);
  started.transfer.wait();
  return std::move(started.buffer);
}
template <class T>
[[nodiscard]] Buffer upload(const Client& client, std::size_t device, const Tensor<T>& elements) {
  return upload(client, device, elements.view());
}

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/buffer.ipp>
#endif
