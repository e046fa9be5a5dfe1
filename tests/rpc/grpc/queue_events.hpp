/// Events of a completion queue without calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include <dist/rpc/grpc/api.hpp>

namespace dist_test {

/// A queue to which a test adds events from one thread: the core reports that the state of a channel without a server
/// has not changed.
class QueueEvents {
 public:
  QueueEvents() {
    grpc_channel_credentials* const credentials = grpc_insecure_credentials_create();
    channel_.reset(grpc_channel_create("127.0.0.1:1", credentials, nullptr));
    grpc_channel_credentials_release(credentials);
  }
  QueueEvents(const QueueEvents&) = delete;
  QueueEvents& operator=(const QueueEvents&) = delete;
  /// Requires that `end` was called and no thread polls.
  ~QueueEvents() { grpc_completion_queue_destroy(queue_); }

  [[nodiscard]] grpc_completion_queue* queue() const { return queue_; }

  /// Adds an event after the given time. Tag::done of the event calls `handle`.
  void put(std::chrono::nanoseconds after, std::function<void()> handle) {
    Event& event = events_.emplace_back(std::move(handle));
    void* const armed = event.tag.armed(
        &event.handle, [](void* event_handle, bool) { (*static_cast<std::function<void()>*>(event_handle))(); });
    grpc_channel_watch_connectivity_state(channel_.get(), GRPC_CHANNEL_IDLE,
                                          dist::grpc::deadline_in(std::max(after, std::chrono::nanoseconds{1})), queue_,
                                          armed);
  }
  void end() { grpc_completion_queue_shutdown(queue_); }

 private:
  struct Event {
    explicit Event(std::function<void()> its) : handle(std::move(its)) {}
    std::function<void()> handle;
    dist::grpc::Tag tag;
  };

  const dist::grpc::Core core_;
  grpc_completion_queue* const queue_ = grpc_completion_queue_create_for_next(nullptr);
  dist::grpc::ChannelPointer channel_;
  std::deque<Event> events_;
};

}  // namespace dist_test
