#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include <dist/context/together.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/say.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>

namespace dist::nn::callbacks {

/// Ends a fit after the batch in which its loss is NaN or infinite in some process, and reports it. The processes look
/// together, after each batch.
class TerminateOnNaN {
 public:
  void on_train_batch_end(auto& model, std::size_t step, CurrentLogs logs) {
    double loss = logs()["loss"];
    const auto& strategy = model.strategy();
    dist::detail::together(strategy, [&] { strategy.workers().all_reduce(sum, std::span<double>{&loss, 1}); });
    if (std::isfinite(loss)) return;
    if (model.is_chief()) say(text("batch ", step, ": the loss is ", loss, ", training ends"));
    model.stop_training_after_batch();
  }
};

}  // namespace dist::nn::callbacks
