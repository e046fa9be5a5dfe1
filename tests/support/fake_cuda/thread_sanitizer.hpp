/// What the thread sanitizer is told, where the program runs under it: which executions there are, and what orders them.
///
/// The fake runtime is compiled without the sanitizer, its locks and its bookkeeping are hidden from it: an edge between
/// two operations exists only where CUDA promises one.
#pragma once

#include <cstddef>

namespace fake_cuda {

[[nodiscard]] bool under_thread_sanitizer() noexcept;

/// Whether the sanitizer looks at the accesses of the calling execution. To be called in pairs, `false` first or within
/// UnseenAccesses.
void see_accesses(bool see) noexcept;

/// While one lives, the sanitizer does not look at the accesses of the calling execution.
class UnseenAccesses {
 public:
  UnseenAccesses() noexcept;
  UnseenAccesses(const UnseenAccesses&) = delete;
  UnseenAccesses& operator=(const UnseenAccesses&) = delete;
  ~UnseenAccesses();
};

/// While one lives, neither accesses nor locks count. Not to be nested.
class UnseenCall {
 public:
  UnseenCall() noexcept;
  UnseenCall(const UnseenCall&) = delete;
  UnseenCall& operator=(const UnseenCall&) = delete;
  ~UnseenCall();

 private:
  UnseenAccesses accesses_;
};

/// Within an UnseenCall: while one lives, moments count.
class SeenSync {
 public:
  SeenSync() noexcept;
  SeenSync(const SeenSync&) = delete;
  SeenSync& operator=(const SeenSync&) = delete;
  ~SeenSync();
};

/// A point in time of one execution, after which others may order themselves.
class Moment {
 public:
  Moment() = default;
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  /// What the calling execution did until now is before what others do after `follow`.
  void mark() noexcept;
  void follow() noexcept;

 private:
  char address_ = 0;
};

/// Something that executes: an operation of a GPU, or one CUDA thread. Nothing orders it but moments.
class Execution {
 public:
  Execution() = default;
  explicit Execution(const char* name);
  /// The one that calls.
  [[nodiscard]] static Execution current() noexcept;

  /// The calling thread goes on as this one.
  void enter() const noexcept;
  /// It never runs again, and does not run now.
  void end() noexcept;

 private:
  void* fiber_ = nullptr;
};

/// An access of the calling execution to memory that uninstrumented code makes.
void reads(const void* first, std::size_t bytes) noexcept;
void writes(void* first, std::size_t bytes) noexcept;

}  // namespace fake_cuda
