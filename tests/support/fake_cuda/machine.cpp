#include "machine.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "call.hpp"
#include "counts.hpp"
#include "device_memory.hpp"
#include "handles.hpp"
#include "pinned_memory.hpp"

namespace fake_cuda {
namespace {

struct Failure {
  cudaError_t error;
  int calls_until;
};

std::optional<Options> chosen;
Counts counted;
std::map<std::string, Failure, std::less<>> failures;
cudaError_t broken = cudaSuccess;
std::set<int> used;  // GPUs with a context
thread_local cudaError_t last_error = cudaSuccess;

/// Returns the GPU that an entry of CUDA_VISIBLE_DEVICES names, or -1.
int device_named(std::string_view entry, int devices) {
  int number = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error == std::errc{} && end == entry.data() + entry.size()) return number >= 0 && number < devices ? number : -1;
  for (int device = 0; device < devices; ++device)
    if (entry == "GPU-" + std::to_string(device)) return device;
  return -1;
}

}  // namespace

std::vector<int> visible_devices() {
  const Options& machine = options();
  std::vector<int> visible;
  if (!machine.visible) {
    for (int device = 0; device < machine.devices; ++device) visible.push_back(device);
    return visible;
  }
  std::istringstream entries{*machine.visible};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const int device = device_named(entry, machine.devices);
    if (device < 0) break;
    if (std::find(visible.begin(), visible.end(), device) != visible.end()) return {};
    visible.push_back(device);
  }
  return visible;
}

void use_context() { used.insert(chosen_device()); }

std::set<int> contexts() {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  return used;
}

std::string to_string(const Options& options) {
  const std::string gpus = std::to_string(options.devices) + (options.devices == 1 ? " GPU, " : " GPUs, ");
  switch (options.schedule) {
    case Schedule::eager:
      return gpus + "eager";
    case Schedule::lazy:
      return gpus + "lazy";
    case Schedule::random:
      break;
  }
  return gpus + "random " + std::to_string(options.seed);
}

Options from_environment() {
  Options options;
  const char* const text = std::getenv("DIST_FAKE_CUDA");
  if (text == nullptr) return options;
  std::istringstream words{text};
  std::string schedule;
  if (!(words >> options.devices >> schedule) || options.devices < 0)
    refuse("DIST_FAKE_CUDA is '" + std::string(text) + "', no number of GPUs and schedule, such as '2 lazy'");
  if (schedule == "lazy") {
    options.schedule = Schedule::lazy;
  } else if (schedule == "random") {
    options.schedule = Schedule::random;
    words >> options.seed;
  } else if (schedule != "eager") {
    refuse("DIST_FAKE_CUDA names the schedule '" + schedule + "': there are eager, lazy and random");
  }
  return options;
}

const Options& options() {
  if (!chosen) chosen = from_environment();
  return *chosen;
}

void restart(const Options& options) {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  reset_scheduler(options.seed);
  chosen = options;
  if (options.visible)
    setenv("CUDA_VISIBLE_DEVICES", options.visible->c_str(), 1);
  else
    unsetenv("CUDA_VISIBLE_DEVICES");
  used.clear();
  counted = {};
  failures.clear();
  broken = last_error = cudaSuccess;
  chosen_device() = 0;
  handles().reset();
  reset_captures();
  live_graphs() = 0;
  reset_access();
  reset_device_memory();
  reset_pinned_memory();
}

Counts& counter() noexcept { return counted; }

Counts counts() {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  Counts now = counted;
  now.operations_run = operations_run();
  return now;
}

Live live() {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  return {handles().streams().size(), handles().events().size(), live_graphs(), live_allocations(),
          live_pinned_allocations()};
}

void fail_call(std::string_view function, cudaError_t error, int nth) {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  failures[std::string(function)] = {error, nth};
}

void break_context(cudaError_t error) {
  const UnseenCall unseen;
  const std::lock_guard lock{machine_mutex()};
  broken = error;
}

std::mutex& machine_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::condition_variable_any& machine_changed() {
  static std::condition_variable_any changed;
  return changed;
}

cudaError_t error_of_call(std::string_view function) {
  if (broken != cudaSuccess) return broken;
  const auto found = failures.find(function);
  if (found != failures.end() && --found->second.calls_until <= 0) {
    const cudaError_t error = found->second.error;
    failures.erase(found);
    return error;
  }
  if (function == "cudaDriverGetVersion" || function == "cudaRuntimeGetVersion") return cudaSuccess;
  // A driver supports all runtimes of its major version.
  if (options().driver.value_or(CUDART_VERSION) / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  return visible_devices().empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t keep_error(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t kept_error(bool forget) {
  const cudaError_t error = broken != cudaSuccess ? broken : last_error;
  if (forget) last_error = cudaSuccess;
  return error;
}

}  // namespace fake_cuda
