#pragma once

#include <dist/train/callbacks/early_stopping.hpp>

namespace dist::nn::callbacks {

DIST_INLINE void EarlyStopping::on_train_begin(ModelView& model) {
  monitor_.begin(model);
  best_weights_ = {};
  waited_ = 0;
  best_epoch_ = 0;
  stopped_epoch_.reset();
}

DIST_INLINE void EarlyStopping::end_epoch(ModelView& model, dist::detail::WalkLeaves network, const Epoch& epoch,
                                          const Logs& logs) {
  const double* const value = monitor_.find(model, logs);
  if (value == nullptr || epoch.index < options_.start_from_epoch) return;
  const auto keep = [&] {
    if (options_.restore_best_weights) best_weights_.keep(model.any_strategy(), network);
    best_epoch_ = epoch.index;
  };
  ++waited_;
  if (monitor_.improve(*value)) {
    keep();
    if (!options_.baseline || monitor_.is_better(*value, *options_.baseline)) waited_ = 0;
    return;
  }
  if (options_.restore_best_weights && best_weights_.is_empty()) keep();
  if (waited_ < options_.patience || epoch.index == 0) return;
  stopped_epoch_ = epoch.index;
  model.stop_training();
}

}  // namespace dist::nn::callbacks
