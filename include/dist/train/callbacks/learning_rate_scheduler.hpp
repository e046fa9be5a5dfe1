#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// Sets the learning rate of each epoch, counted from 0, to `schedule(epoch)` or `schedule(epoch, current_rate)`. Adds
/// it to the logs as "lr" (spec Q21).
template <class Schedule>
class LearningRateScheduler {
  static constexpr bool takes_epoch = std::invocable<Schedule&, std::size_t>;
  static constexpr bool takes_rate = std::invocable<Schedule&, std::size_t, float>;
  static_assert(takes_epoch || takes_rate,
                "LearningRateScheduler takes a function of the epoch, or of the epoch and the current learning rate, "
                "that returns the new learning rate: [](std::size_t epoch) { return epoch < 3 ? 1e-3f : 1e-4f; }");

 public:
  static constexpr std::string_view adds_to_logs = "lr";

  /// `schedule(epoch)` or `schedule(epoch, learning_rate)` returns the rate of the epoch, counted from 0.
  explicit LearningRateScheduler(Schedule schedule) : schedule_(std::move(schedule)) {}

  void on_epoch_begin(ModelView& model, const Epoch& epoch) {
    if constexpr (takes_rate)
      model.set_learning_rate(static_cast<float>(schedule_(epoch.index, model.learning_rate())));
    else if constexpr (takes_epoch)
      model.set_learning_rate(static_cast<float>(schedule_(epoch.index)));
  }
  void on_epoch_end(ModelView& model, const Epoch&, Logs& logs) {
    logs.set("lr", static_cast<double>(model.learning_rate()));
  }

 private:
  Schedule schedule_;
};

}  // namespace dist::nn::callbacks
