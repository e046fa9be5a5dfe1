#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/train/callbacks/reduce_lr_on_plateau.hpp>

namespace dist::nn::callbacks {

DIST_INLINE ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, name) {
  if (!(options_.factor > 0 && options_.factor < 1))
    throw InvalidArgument("ReduceLROnPlateauOptions.factor is out of range", concat("it is ", options_.factor),
                          "Give a number between 0 and 1, by which the learning rate is multiplied");
}

DIST_INLINE void ReduceLROnPlateau::on_train_begin(ModelView& model) {
  model.set_learning_rate(model.learning_rate());  // throws if it cannot be set
  monitor_.begin(model);
  cooldown_ = waited_ = 0;
}

DIST_INLINE void ReduceLROnPlateau::on_epoch_end(ModelView& model, const Epoch&, Logs& logs) {
  const float rate = model.learning_rate();
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
    model.set_learning_rate(static_cast<float>(std::max(static_cast<double>(rate) * options_.factor, options_.min_lr)));
    cooldown_ = options_.cooldown;
    waited_ = 0;
  }
}

}  // namespace dist::nn::callbacks
