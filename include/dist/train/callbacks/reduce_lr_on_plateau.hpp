#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// The options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  /// The name of the value in the logs.
  std::string monitor = "val_loss";
  /// Multiplies the learning rate; between 0 and 1.
  double factor = 0.1;
  /// The number of epochs without improvement that reduces the learning rate.
  std::size_t patience = 10;
  /// The direction in which the value improves.
  Mode mode = Mode::automatic;
  /// The change that counts as an improvement.
  double min_delta = 1e-4;
  /// The number of epochs after a reduction that do not count.
  std::size_t cooldown = 0;
  /// The lower limit of the learning rate.
  double min_lr = 0;
};

/// Multiplies the learning rate by a factor when a value of the logs has stopped improving, by Keras' rules (spec Q23).
/// Adds the epoch's rate to the logs as "lr".
class ReduceLROnPlateau {
 public:
  static constexpr std::string_view name = "ReduceLROnPlateau";
  static constexpr std::string_view adds_to_logs = "lr";

  /// Throws InvalidArgument unless the factor is between 0 and 1.
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});

  /// Throws InvalidArgument if the optimizer has a schedule, and like Monitor::begin.
  void on_train_begin(ModelView& model);
  void on_epoch_end(ModelView& model, const Epoch&, Logs& logs);

  /// See Trackable. The optimizer saves the learning rate.
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

#ifndef DIST_COMPILED
#include <dist/train/callbacks/reduce_lr_on_plateau.ipp>
#endif
