/// The back end nn::Xla for compiled steps, with lowerings of all layers, losses, metrics, optimizers and regularizers
/// of `<dist/nn.hpp>`, and of nn::Model. To compile faster, include only the needed headers of `<dist/nn/hlo/>`.
#pragma once

#include <dist/nn/hlo/backend.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/image_layers.hpp>
#include <dist/nn/hlo/layers.hpp>
#include <dist/nn/hlo/traced_fit.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/hlo/traced_metric.hpp>
#include <dist/nn/hlo/traced_optimizer.hpp>
#include <dist/nn/hlo/traced_regularizer.hpp>
