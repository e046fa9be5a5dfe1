/// Annotations for the thread sanitizer, if the program runs under it: executions, and their order.
///
/// The fake runtime is hidden: operations are only ordered if CUDA guarantees it.
#pragma once

#include <cstddef>

namespace fake_cuda {

[[nodiscard]] bool under_thread_sanitizer() noexcept;

/// Enables or disables checks of the calling execution's accesses. Calls are paired: `false` first, or within
/// UnseenAccesses.
void see_accesses(bool see) noexcept;

/// Hides the accesses of the calling execution during its lifetime.
class UnseenAccesses {
 public:
  UnseenAccesses() noexcept;
  UnseenAccesses(const UnseenAccesses&) = delete;
  UnseenAccesses& operator=(const UnseenAccesses&) = delete;
  ~UnseenAccesses();
};

/// Hides accesses and locks during its lifetime. Do not nest.
class UnseenCall {
 public:
  UnseenCall() noexcept;
  UnseenCall(const UnseenCall&) = delete;
  UnseenCall& operator=(const UnseenCall&) = delete;
  ~UnseenCall();

 private:
  UnseenAccesses accesses_;
};

/// Makes moments visible within an UnseenCall.
class SeenSync {
 public:
  SeenSync() noexcept;
  SeenSync(const SeenSync&) = delete;
  SeenSync& operator=(const SeenSync&) = delete;
  ~SeenSync();
};

/// A point in time of an execution, with which others may synchronise.
class Moment {
 public:
  Moment() = default;
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  /// Orders the earlier work of the calling execution before the work of others after `follow`.
  void mark() noexcept;
  void follow() noexcept;

 private:
  char address_ = 0;
};

/// An execution: an operation of a GPU, or one CUDA thread. Only moments order it.
class Execution {
 public:
  Execution() = default;
  explicit Execution(const char* name);
  [[nodiscard]] static Execution current() noexcept;

  /// Switches the calling thread to this execution.
  void enter() const noexcept;
  /// Ends the execution, which must not be running, for good.
  void end() noexcept;

 private:
  void* fiber_ = nullptr;
};

/// Annotates an access of the calling execution by uninstrumented code.
void reads(const void* first, std::size_t bytes) noexcept;
void writes(void* first, std::size_t bytes) noexcept;

}  // namespace fake_cuda
