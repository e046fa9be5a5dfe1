#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  /// So many epochs without a better value reduce the learning rate.
  std::size_t patience = 10;
  Mode mode = Mode::automatic;
  double min_delta = 1e-4;
  /// For so many epochs after that, epochs do not count.
  std::size_t cooldown = 0;
  double min_lr = 0;
};

/// Multiplies the learning rate by a factor when a value of the logs has stopped to get better, by Keras' rules (spec
/// Q23). Adds the rate of the epoch to the logs as "lr".
class ReduceLROnPlateau {
 public:
  static constexpr std::string_view name = "ReduceLROnPlateau";
  static constexpr std::string_view adds_to_logs = "lr";

  /// Throws InvalidArgument for a factor that is not between 0 and 1.
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {})
      : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, name) {
    if (!(options_.factor > 0 && options_.factor < 1))
      throw InvalidArgument("ReduceLROnPlateauOptions.factor is out of range", concat("it is ", options_.factor),
                            "Give a number between 0 and 1, by which the learning rate is multiplied");
  }

  /// Throws InvalidArgument where the optimizer has a schedule, and as Monitor::begin does.
  void on_train_begin(auto& model) {
    model.optimizer().set_learning_rate(model.optimizer().learning_rate());  // throws where none can be set
    monitor_.begin(model);
    cooldown_ = waited_ = 0;
  }
  void on_epoch_end(auto& model, const Epoch&, Logs& logs) {
    const float rate = model.optimizer().learning_rate();
    logs.set("lr", static_cast<double>(rate));
    const double* const value = monitor_.find(model, logs);
    if (value == nullptr) return;
    if (cooldown_ > 0) {
      --cooldown_;
      waited_ = 0;
    }
    if (monitor_.improve(*value)) {
      waited_ = 0;
    } else if (cooldown_ == 0 && ++waited_ >= options_.patience && static_cast<double>(rate) > options_.min_lr) {
      model.optimizer().set_learning_rate(
          static_cast<float>(std::max(static_cast<double>(rate) * options_.factor, options_.min_lr)));
      cooldown_ = options_.cooldown;
      waited_ = 0;
    }
  }

  /// See Trackable. The learning rate is the optimizer's.
  void track(auto& visit) {
    monitor_.track(visit);
    visit("cooldown", cooldown_);
    visit("waited", waited_);
  }

 private:
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  std::size_t cooldown_ = 0;
  std::size_t waited_ = 0;
};

}  // namespace dist::nn::callbacks
