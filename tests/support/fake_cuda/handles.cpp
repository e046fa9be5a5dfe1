#include "handles.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "call.hpp"
#include "refusal.hpp"
#include "scheduler.hpp"

namespace fake_cuda {
namespace {

template <class T>
bool is_in(const std::vector<T*>& all, const T* one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <class T>
void destroy_in(std::vector<T*>& all, T* one) {
  std::erase(all, one);
  delete one;
}

}  // namespace

cudaStream_t Handles::make_stream(int device) {
  streams_.push_back(new CUstream_st{});
  streams_.back()->device = device;
  streams_.back()->number = ++made_;
  return streams_.back();
}
cudaEvent_t Handles::make_event(int device, bool has_time) {
  events_.push_back(new CUevent_st{});
  events_.back()->device = device;
  events_.back()->has_time = has_time;
  return events_.back();
}

void Handles::destroy(cudaStream_t stream) { destroy_in(streams_, stream); }
void Handles::destroy(cudaEvent_t event) { destroy_in(events_, event); }

CUstream_st& Handles::stream(cudaStream_t stream, std::string_view function) const {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    refuse(std::string(function) + " on the legacy stream, which waits for all others: give it a stream of its own");
  if (!is_in(streams_, stream)) refuse(std::string(function) + " on a stream that does not exist");
  return *stream;
}
CUevent_st& Handles::event(cudaEvent_t event, std::string_view function) const {
  if (!is_in(events_, event)) refuse(std::string(function) + " of an event that does not exist");
  return *event;
}

void Handles::reset() {
  while (!streams_.empty()) destroy(streams_.back());
  while (!events_.empty()) destroy(events_.back());
  made_ = 0;
}

Handles& handles() {
  static Handles all;
  return all;
}

OperationRef next_operation(CUstream_st& stream, std::string_view name) {
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  operation->device = stream.device;
  operation->stream = stream.number;
  const OperationRef& last = stream.capture != nullptr ? stream.last_captured : stream.last;
  if (last != nullptr) operation->before.push_back(last);
  return operation;
}

void put_on(CUstream_st& stream, OperationRef operation) {
  if (stream.capture == nullptr) {
    stream.last = operation;
    put(operation);
    return;
  }
  {
    const SeenSync seen;
    operation->put.mark();
  }
  stream.capture->nodes.push_back(operation);
  stream.last_captured = std::move(operation);
}

void put_for_library(cudaStream_t stream, std::string_view name, std::function<void()> work,
                     std::function<bool()> ready) {
  call(name, [&] {
    CUstream_st& on = handles().stream(stream, name);
    OperationRef operation = next_operation(on, name);
    operation->work = std::make_shared<const std::function<void()>>(std::move(work));
    operation->ready = std::move(ready);
    put_on(on, std::move(operation));
    return cudaSuccess;
  });
}

int& chosen_device() noexcept {
  thread_local int device = 0;
  return device;
}

std::size_t& live_graphs() noexcept {
  static std::size_t count = 0;
  return count;
}

}  // namespace fake_cuda
