/// One call of the runtime: alone inside, unseen by the thread sanitizer, and with the errors that the test asked for.
#pragma once

#include <driver_types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>

#include "refusal.hpp"
#include "scheduler.hpp"
#include "thread_sanitizer.hpp"

namespace fake_cuda {

/// Guards everything. Fakes have no parallel speed.
std::mutex& machine_mutex();
/// Notified when operations were put or done.
std::condition_variable_any& machine_changed();

/// The error that a call of `function` returns instead of doing anything.
[[nodiscard]] cudaError_t error_of_call(std::string_view function);
/// Keeps an error for cudaGetLastError of the calling thread, and returns it.
cudaError_t keep_error(cudaError_t error);

/// The error of the calling thread, which is then forgotten or not.
[[nodiscard]] cudaError_t kept_error(bool forget);

template <class Body>
cudaError_t call(std::string_view function, Body&& body) {
  if (running_operation() != nullptr)
    refuse(std::string(function) + " is called from a kernel or a function of a stream");
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  if (const cudaError_t error = error_of_call(function); error != cudaSuccess) return keep_error(error);
  return keep_error(body());
}

}  // namespace fake_cuda
