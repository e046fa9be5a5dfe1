/// std::thread and std::this_thread without std::jthread, whose stop tokens include semaphores. To print a
/// std::thread::id, include `<thread>`.
#pragma once

#if __has_include(<bits/std_thread.h>) && __has_include(<bits/this_thread_sleep.h>)
#include <bits/std_thread.h>  // the parts of libstdc++ that `<future>` includes, since GCC 11
#include <bits/this_thread_sleep.h>
#else
#include <thread>
#endif

#include <unistd.h>

#include <utility>

namespace dist::detail {

/// The process that created an object. A forked child has a copy of the object, but not its threads or connections.
class OwnProcess {
 public:
  /// False in a forked child.
  [[nodiscard]] bool is_here() const noexcept { return id_ == getpid(); }

 private:
  pid_t id_ = getpid();
};

/// A thread that its owner joins. In a forked child it is not joinable, and not destroyed.
class JoinedThread {
 public:
  JoinedThread() noexcept : thread_() {}
  JoinedThread(std::thread thread) noexcept : thread_(std::move(thread)) {}
  JoinedThread(JoinedThread&& other) noexcept : thread_(std::move(other.thread_)), process_(other.process_) {}
  JoinedThread& operator=(JoinedThread&& other) noexcept {
    thread_ = std::move(other.thread_);
    process_ = other.process_;
    return *this;
  }
  ~JoinedThread() {
    if (is_here()) thread_.~thread();
  }

  /// False in a forked child.
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }
  [[nodiscard]] bool joinable() const noexcept { return is_here() && thread_.joinable(); }
  [[nodiscard]] std::thread::id get_id() const noexcept { return thread_.get_id(); }
  void join() {
    if (is_here()) thread_.join();
  }

 private:
  union {
    std::thread thread_;  // not destroyed in a forked child
  };
  OwnProcess process_;
};

}  // namespace dist::detail
