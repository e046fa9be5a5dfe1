#pragma once

#include <dist/nn/onednn/backend.hpp>

#include "cnn_training.hpp"

namespace bench {

/// Training of the CNN on CPUs.
template <class Strategy, class Gradients = nn::StoredGradients>
using Training = TrainingBy<nn::OneDnn, Strategy, Gradients>;

}  // namespace bench
