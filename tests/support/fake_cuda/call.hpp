/// One call of the runtime: exclusive, hidden from the thread sanitizer, and with the failures that the test has
/// requested.
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

/// Guards everything. Fakes do not run in parallel.
std::mutex& machine_mutex();
/// Notified when operations were submitted or done.
std::condition_variable_any& machine_changed();

/// Returns the requested failure of this call of `function`, if any.
[[nodiscard]] cudaError_t error_of_call(std::string_view function);
/// Stores an error for cudaGetLastError of the calling thread, and returns it.
cudaError_t keep_error(cudaError_t error);

/// Returns the error of the calling thread, and clears it if `forget`.
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
