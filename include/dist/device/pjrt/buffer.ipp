#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/buffer.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist::pjrt::detail {

/// State of the plugin's callback, which may run after the wait has timed out.
struct EventSignal {
  std::atomic<bool> is_done{false};
  ::dist::detail::EventCount sleepers;
};
struct EventCallback {
  std::shared_ptr<EventSignal> signal;
  const Api& api;
};

}  // namespace dist::pjrt::detail

namespace dist::pjrt {

DIST_INLINE std::string Event::description() const { return concat(what_, " on platform ", client_.platform()); }

DIST_INLINE void Event::wait() const {
  const auto what = [&] { return description(); };
  if (!is_done()) sleep();
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_Error_Args);
  arguments.event = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Event_Error, arguments, what);
}

DIST_INLINE bool Event::is_done() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_IsReady_Args);
  arguments.event = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Event_IsReady, arguments, [&] { return concat("to check ", what_); });
  return arguments.is_ready;
}

DIST_INLINE void Event::sleep() const {
  const auto what = [&] { return description(); };
  const std::int64_t timeout = client_.timeout().count();
  const std::int64_t longest = timeout == 0 ? 1'000'000 : std::min<std::int64_t>(1'000'000, timeout);
  const std::shared_ptr<detail::EventSignal> signal = std::make_shared<detail::EventSignal>();
  auto for_plugin = std::make_unique<detail::EventCallback>(detail::EventCallback{signal, client_.api()});
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Event_OnReady_Args);
  arguments.event = handle_.get();
  arguments.callback = [](PJRT_Error* error, void* user) {
    const std::unique_ptr<detail::EventCallback> callback{static_cast<detail::EventCallback*>(user)};
    if (error != nullptr) callback->api.destroy(error);  // the event has a separate copy
    callback->signal->is_done.store(true);
    callback->signal->sleepers.notify();
  };
  arguments.user_arg = for_plugin.get();
  client_.api().call(&PJRT_Api::PJRT_Event_OnReady, arguments, what);
  static_cast<void>(for_plugin.release());
  const auto is_over = [&] { return signal->is_done.load(); };
  ::dist::detail::await(
      is_over, [&] { signal->sleepers.wait(is_over, longest); }, what, client_.timeout(),
      "Check that all participating processes and devices run the same programs");
}

DIST_INLINE Shape Buffer::shape() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_Dimensions_Args);
  arguments.buffer = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Buffer_Dimensions, arguments, [] { return "to return a buffer's extents"; });
  const std::vector<std::size_t> extents(arguments.dims, arguments.dims + arguments.num_dims);
  return Shape(std::span<const std::size_t>{extents});
}

DIST_INLINE PJRT_Buffer_Type Buffer::type() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_ElementType_Args);
  arguments.buffer = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Buffer_ElementType, arguments, [] { return "to return a buffer's type"; });
  return arguments.type;
}

DIST_INLINE bool Buffer::is_donated() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_IsDeleted_Args);
  arguments.buffer = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Buffer_IsDeleted, arguments,
                     [] { return "to check whether a buffer still exists"; });
  return arguments.is_deleted;
}

DIST_INLINE Event Buffer::ready() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Buffer_ReadyEvent_Args);
  arguments.buffer = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_Buffer_ReadyEvent, arguments, [] { return "to wait for a buffer"; });
  return {client_, arguments.event, "a result"};
}

DIST_INLINE void Buffer::require_readable(PJRT_Buffer_Type wanted, std::string_view name, const Shape& target) const {
  if (is_donated())
    throw InvalidArgument("A buffer cannot be read", "a program has reused its memory for a result",
                          "Read the result, or copy the buffer to the host earlier");
  if (shape() != target)
    throw ShapeMismatch("A buffer cannot be copied to the host",
                        concat("its shape is ", shape(), ", the target's shape is ", target),
                        "Give both the same shape");
  if (type() != wanted)
    throw InvalidArgument("A buffer cannot be copied to the host",
                          concat("its elements have PJRT's type ", static_cast<int>(type()), ", not ", name, ", type ",
                                 static_cast<int>(wanted)),
                          "Read it as the type that the program computes");
}

}  // namespace dist::pjrt
