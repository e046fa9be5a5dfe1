#pragma once

#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/condition_variable.hpp>
#include <dist/core/error.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/core/trace.hpp>
#include <dist/data/parallel_map.hpp>

namespace dist::data::detail {

DIST_INLINE void require_parallel_calls(NumParallelCalls calls) {
  constexpr std::size_t most = 1024;
  if (calls.count == 0 || calls.count > most)
    throw InvalidArgument("map cannot call its function in that many threads",
                          concat(calls.count, " given, 1 to ", most, " can be"),
                          "Use the number of cores that training leaves free");
}

/// Threads that take turns in reading arguments, and call a function at the same time. Result `n` is made in slot n
/// modulo the number of slots, where the consumer swaps it.
class ParallelCalls final : public AnyPass {
 public:
  ParallelCalls(std::unique_ptr<AnyPass> arguments, std::unique_ptr<AnyCall> call, const ElementOps& of_arguments,
                const ElementOps& of_results, std::size_t threads, std::uint64_t first)
      : arguments_(std::move(arguments)), call_(std::move(call)), ops_(&of_results), first_(first) {
    slots_.reserve(threads);
    for (std::size_t slot = 0; slot < threads; ++slot)
      slots_.push_back({AnyElement{of_arguments}, AnyElement{of_results}});
    threads_.reserve(threads);
    try {
      for (std::size_t thread = 0; thread < threads; ++thread)
        threads_.emplace_back(std::thread{[this] {
          dist::detail::name_this_thread("dist map");
          work();
        }});
    } catch (const std::exception& refusal) {
      stop();
      throw OutOfMemory("No thread for map", refusal.what(), "Raise the limit on threads (ulimit -u)");
    }
  }
  ~ParallelCalls() override { stop(); }

  [[gnu::noinline]] bool next(void* element) override {
    Lock lock{mutex_};
    Slot& slot = slots_[taken_ % slots_.size()];
    if (slot.state == State::free) {
      const TraceSpan span{dist::detail::traced("wait for map")};
      while (slot.state == State::free) made_.wait(lock);
    }
    // Keep the last slot, so that further calls give the same result.
    if (slot.state == State::error) std::rethrow_exception(slot.error);
    if (slot.state == State::end) return false;
    ops_->exchange(slot.result.get(), element);
    slot.state = State::free;
    ++taken_;
    lock.unlock();
    has_work_.notify_one();
    return true;
  }

 private:
  using Lock = dist::detail::ConditionVariable::Lock;
  enum class State : unsigned char { free, result, end, error };
  struct Slot {
    AnyElement argument, result;
    State state = State::free;
    std::exception_ptr error = {};
  };

  void work() noexcept {
    Lock lock{mutex_};
    for (;;) {
      while (!ended_ && (is_reading_ || read_ - taken_ == slots_.size())) has_work_.wait(lock);
      if (ended_) return;
      const std::uint64_t index = read_;
      Slot& slot = slots_[index % slots_.size()];
      is_reading_ = true;
      lock.unlock();
      State state = attempt(slot, [&] { return arguments_->next(slot.argument.get()) ? State::result : State::end; });
      lock.lock();
      is_reading_ = false;
      if (state == State::result) {
        ++read_;
        lock.unlock();
        has_work_.notify_one();  // the next thread reads
        state = attempt(slot, [&] {
          const TraceSpan span{dist::detail::traced("map")};
          (*call_)(slot.argument.get(), slot.result.get(), first_ + index);
          return State::result;
        });
        lock.lock();
      }
      slot.state = state;
      made_.notify_one();
      if (state != State::result) end();
    }
  }
  /// Returns the result of `make`, or State::error if it throws.
  template <class Make>
  [[nodiscard]] static State attempt(Slot& slot, const Make& make) {
    try {
      return make();
    } catch (...) {
      slot.error = std::current_exception();
      return State::error;
    }
  }
  /// No element after this one is needed. Requires the lock.
  void end() {
    ended_ = true;
    has_work_.notify_all();
  }
  void stop() {
    {
      const Lock lock{mutex_};
      end();
    }
    for (dist::detail::JoinedThread& thread : threads_) thread.join();
  }

  std::unique_ptr<AnyPass> arguments_;
  std::unique_ptr<AnyCall> call_;
  const ElementOps* ops_;
  std::uint64_t first_;
  std::mutex mutex_;  // guards the following members, except elements in use
  dist::detail::ConditionVariable made_, has_work_;
  std::vector<Slot> slots_;
  std::uint64_t read_ = 0, taken_ = 0;
  bool is_reading_ = false, ended_ = false;
  std::vector<dist::detail::JoinedThread> threads_;
};

DIST_INLINE std::unique_ptr<AnyPass> called_in_parallel(std::unique_ptr<AnyPass> arguments,
                                                        std::unique_ptr<AnyCall> call, const ElementOps& of_arguments,
                                                        const ElementOps& of_results, std::size_t threads,
                                                        std::uint64_t first) {
  return std::make_unique<ParallelCalls>(std::move(arguments), std::move(call), of_arguments, of_results, threads,
                                         first);
}

}  // namespace dist::data::detail
