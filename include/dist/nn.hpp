/// Networks whose shapes are known at compile time: layers, losses, optimizers, metrics, and the reference back end.
/// The oneDNN back end is a header of its own, <dist/nn/onednn/backend.hpp>.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/core/error.hpp>  // what callers catch
#include <dist/nn/activation.hpp>
#include <dist/nn/collective_gradients.hpp>
#include <dist/nn/forward_mode.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/flatten.hpp>
#include <dist/nn/layers/input.hpp>
#include <dist/nn/layers/max_pool2d.hpp>
#include <dist/nn/layers/relu.hpp>
#include <dist/nn/layers/reshape.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/hinge.hpp>
#include <dist/nn/losses/huber.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/losses/mean_absolute_error.hpp>
#include <dist/nn/losses/mean_squared_error.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/binary_accuracy.hpp>
#include <dist/nn/metrics/categorical_accuracy.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/f1.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/mean_value.hpp>
#include <dist/nn/metrics/precision.hpp>
#include <dist/nn/metrics/recall.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/nn/metrics/sparse_top_k_categorical_accuracy.hpp>
#include <dist/nn/metrics/top_k_categorical_accuracy.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/moving_average.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/adam_w.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/nn/schedules/cosine_decay.hpp>
#include <dist/nn/schedules/exponential_decay.hpp>
#include <dist/nn/schedules/piecewise_constant.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/nn/slices_optimizer.hpp>
