#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/dtype.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/await.hpp>
#include <dist/device/pjrt/client.hpp>
#include <dist/device/wait.hpp>

namespace dist::pjrt {

/// What a device does in the background, a transfer or an execution. It models `Work`: the handle may go before it is done.
class Event {
 public:
  /// Takes over an event of the client's plugin; `what` says what it is: "a transfer to device 1".
  Event(Client client, PJRT_Event* handle, std::string what)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), what_(std::move(what)) {}

  /// Throws what went wrong, OutOfMemory or PjrtError, and DeadlineExceeded after the client's timeout.
  void wait() const {
    const auto what = [&] { return text(what_, " on platform ", client_.platform()); };
    if (!is_done()) sleep(what);
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_Error_Args);
    arguments.event = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Event_Error, arguments, what);
  }
  [[nodiscard]] bool is_done() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_IsReady_Args);
    arguments.event = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Event_IsReady, arguments, [&] { return text("to look at ", what_); });
    return arguments.is_ready;
  }

 private:
  /// Whether the plugin has called back. A wait that gave up has gone by then.
  struct Signal {
    std::atomic<bool> is_done{false};
    ::dist::detail::EventCount sleepers;
  };
  struct Callback {
    std::shared_ptr<Signal> signal;
    const Api& api;
  };

  /// Sleeps until the plugin says that it is done. A thread that spins instead takes the core that the work may need.
  template <class What>
  void sleep(const What& what) const {
    const std::int64_t timeout = client_.timeout().count();
    const std::int64_t longest = timeout == 0 ? 1'000'000 : std::min<std::int64_t>(1'000'000, timeout);
    const std::shared_ptr<Signal> signal = std::make_shared<Signal>();
    auto for_plugin = std::make_unique<Callback>(Callback{signal, client_.api()});
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_OnReady_Args);
    arguments.event = handle_.get();
    arguments.callback = [](PJRT_Error* error, void* user) {
      const std::unique_ptr<Callback> callback{static_cast<Callback*>(user)};
      if (error != nullptr) callback->api.destroy(error);  // the event keeps its own
      callback->signal->is_done.store(true);
      callback->signal->sleepers.notify();
    };
    arguments.user_arg = for_plugin.get();
    client_.api().call(&PJRT_Api::PJRT_Event_OnReady, arguments, what);
    static_cast<void>(for_plugin.release());
    const auto is_over = [&] { return signal->is_done.load(); };
    ::dist::detail::await(
        is_over, [&] { signal->sleepers.wait(is_over, longest); }, what, client_.timeout(),
        "Look whether all processes and devices that take part run the same programs");
  }

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
  [[nodiscard]] Shape shape() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_Dimensions_Args);
    arguments.buffer = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Buffer_Dimensions, arguments, [] { return "to tell a buffer's extents"; });
    const std::vector<std::size_t> extents(arguments.dims, arguments.dims + arguments.num_dims);
    return Shape(std::span<const std::size_t>{extents});
  }
  /// PJRT's name for the type of the elements.
  [[nodiscard]] PJRT_Buffer_Type type() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_ElementType_Args);
    arguments.buffer = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Buffer_ElementType, arguments, [] { return "to tell a buffer's type"; });
    return arguments.type;
  }
  /// A program has taken its memory for a result: nothing can be read any more.
  [[nodiscard]] bool is_donated() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_IsDeleted_Args);
    arguments.buffer = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Buffer_IsDeleted, arguments, [] { return "to tell whether a buffer is left"; });
    return arguments.is_deleted;
  }

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
  [[nodiscard]] Event ready() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_ReadyEvent_Args);
    arguments.buffer = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_Buffer_ReadyEvent, arguments, [] { return "to wait for a buffer"; });
    return {client_, arguments.event, "a result"};
  }

  void require_readable(PJRT_Buffer_Type wanted, std::string_view name, const Shape& target) const {
    if (is_donated())
      throw InvalidArgument("A buffer cannot be read", "a program has taken its memory for a result",
                            "Read the result, or copy the buffer to the host before");
    if (shape() != target)
      throw ShapeMismatch("A buffer cannot be copied to the host",
                          text("its shape is ", shape(), ", that of the target ", target), "Give both the same shape");
    if (type() != wanted)
      throw InvalidArgument("A buffer cannot be copied to the host",
                            text("its elements are PJRT's type ", static_cast<int>(type()), ", and not ", name,
                                 ", type ", static_cast<int>(wanted)),
                            "Read it as the type that the program computes");
  }

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
                    [&] { return text("to copy ", elements.shape(), " ", dtype_name<T>, " to device ", device); });
  return {Buffer{client, arguments.buffer},
          Event{client, arguments.done_with_host_buffer, text("a transfer to device ", device)}};
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
