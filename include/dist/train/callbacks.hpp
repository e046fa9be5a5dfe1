#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>

#include <dist/train/logs.hpp>

namespace dist::nn {

/// One epoch of a fit.
struct Epoch {
  std::size_t index = 0;                            ///< from 0
  std::size_t epochs = 1;                           ///< of the fit
  std::optional<std::size_t> steps = std::nullopt;  ///< global batches, once they are known (spec Q05)
};

/// The logs of the steps so far. They are gathered from the replicas of this process when asked for, so a step costs
/// nothing for callbacks that do not look, and each process may look when it likes.
class CurrentLogs {
 public:
  using Read = const Logs& (*)(void*);

  CurrentLogs(void* source, Read read) : source_(source), read_(read) {}

  /// Valid until the next step.
  [[nodiscard]] const Logs& operator()() const { return read_(source_); }

 private:
  void* source_;
  Read read_;
};

/// Whatever follows a fit or an evaluation: it has one or more of these hooks, and only those it has are
/// called, always outside replica functions.
///
///     on_epoch_begin(const Epoch&)
///     on_batch_end(std::size_t step, CurrentLogs)        step from 0
///     on_epoch_end(const Epoch&, const Logs&)            with validation's logs
///     on_test_begin(std::optional<std::size_t> steps)    also of a fit's validation, like the following
///     on_test_batch_end(std::size_t step, CurrentLogs)
///     on_test_end(std::size_t steps, const Logs&)
template <class O>
concept FollowsEpochBegin = requires(O& callback, const Epoch& epoch) {
  callback.on_epoch_begin(epoch);
};
template <class O>
concept FollowsBatchEnd = requires(O& callback, CurrentLogs logs) {
  callback.on_batch_end(std::size_t{}, logs);
};
template <class O>
concept FollowsEpochEnd = requires(O& callback, const Epoch& epoch, const Logs& logs) {
  callback.on_epoch_end(epoch, logs);
};
template <class O>
concept FollowsTestBegin = requires(O& callback, std::optional<std::size_t> steps) {
  callback.on_test_begin(steps);
};
template <class O>
concept FollowsTestBatchEnd = requires(O& callback, CurrentLogs logs) {
  callback.on_test_batch_end(std::size_t{}, logs);
};
template <class O>
concept FollowsTestEnd = requires(O& callback, const Logs& logs) {
  callback.on_test_end(std::size_t{}, logs);
};
template <class O>
concept TrainingCallback = FollowsEpochBegin<O> || FollowsBatchEnd<O> || FollowsEpochEnd<O>;
template <class O>
concept TestingCallback = FollowsTestBegin<O> || FollowsTestBatchEnd<O> || FollowsTestEnd<O>;
template <class O>
concept Callback = TrainingCallback<O> || TestingCallback<O>;

/// Calls each of several callbacks, in order. Resolved at compile time. Refers to them.
template <Callback... O>
class Callbacks {
 public:
  explicit Callbacks(O&... callbacks) : callbacks_(callbacks...) {}

  void epoch_begin(const Epoch& epoch) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsEpochBegin<C>) callback.on_epoch_begin(epoch);
    });
  }
  void batch_end(std::size_t step, CurrentLogs logs) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsBatchEnd<C>) callback.on_batch_end(step, logs);
    });
  }
  void epoch_end(const Epoch& epoch, const Logs& logs) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsEpochEnd<C>) callback.on_epoch_end(epoch, logs);
    });
  }
  void test_begin(std::optional<std::size_t> steps) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsTestBegin<C>) callback.on_test_begin(steps);
    });
  }
  void test_batch_end(std::size_t step, CurrentLogs logs) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsTestBatchEnd<C>) callback.on_test_batch_end(step, logs);
    });
  }
  void test_end(std::size_t steps, const Logs& logs) {
    each([&]<class C>(C& callback) {
      if constexpr (FollowsTestEnd<C>) callback.on_test_end(steps, logs);
    });
  }

 private:
  template <class Call>
  void each(Call call) {
    std::apply([&](auto&... callback) { (call(callback), ...); }, callbacks_);
  }

  std::tuple<O&...> callbacks_;
};

/// The test hooks of Callbacks, whatever their types. Refers to them.
class TestCallback {
 public:
  template <class... O>
  explicit TestCallback(Callbacks<O...>& callbacks)
      : callbacks_(&callbacks),
        begin_([](void* all, std::optional<std::size_t> steps) { of<O...>(all).test_begin(steps); }),
        batch_end_([](void* all, std::size_t step, CurrentLogs logs) { of<O...>(all).test_batch_end(step, logs); }),
        end_([](void* all, std::size_t steps, const Logs& logs) { of<O...>(all).test_end(steps, logs); }) {}

  void on_test_begin(std::optional<std::size_t> steps) { begin_(callbacks_, steps); }
  void on_test_batch_end(std::size_t step, CurrentLogs logs) { batch_end_(callbacks_, step, logs); }
  void on_test_end(std::size_t steps, const Logs& logs) { end_(callbacks_, steps, logs); }

 private:
  template <class... O>
  static Callbacks<O...>& of(void* callbacks) {
    return *static_cast<Callbacks<O...>*>(callbacks);
  }

  void* callbacks_;
  void (*begin_)(void*, std::optional<std::size_t>);
  void (*batch_end_)(void*, std::size_t, CurrentLogs);
  void (*end_)(void*, std::size_t, const Logs&);
};

}  // namespace dist::nn
