#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/say.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>

namespace dist::nn::callbacks {

/// Ends a fit when its loss is NaN or infinite, and says after which batch. Each process looks at the loss of its own
/// replicas after each batch, and one that ends the fit ends it in all (Model::stop_training).
class TerminateOnNaN {
 public:
  void on_train_batch_end(auto& model, std::size_t step, CurrentLogs logs) {
    if (std::isfinite(logs()["loss"])) return;
    say(text("batch ", step, ": the loss is ", logs()["loss"], ", training ends"));
    model.stop_training();
  }
};

}  // namespace dist::nn::callbacks
