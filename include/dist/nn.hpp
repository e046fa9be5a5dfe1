/// Networks with compile-time shapes: layers, losses, optimizers, metrics, and the reference back end. The oneDNN
/// back end is in <dist/nn/onednn/backend.hpp>.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/nn/activation.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/collective_gradients.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/rms_normalization.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/moving_average.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adadelta.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/lion.hpp>
#include <dist/nn/optimizers/nadam.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/nn/slices_optimizer.hpp>
