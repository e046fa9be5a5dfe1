/// Networks in steps that XLA compiles: the back end nn::Xla with what programs compute for all layers, losses, metrics,
/// optimizers and regularizers of <dist/nn.hpp>, and for nn::Model. A program that is to compile faster includes of
/// <dist/nn/hlo/> what its network has.
#pragma once

#include <dist/nn/hlo/backend.hpp>
#include <dist/nn/hlo/branches.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/dropout.hpp>
#include <dist/nn/hlo/image_layers.hpp>
#include <dist/nn/hlo/normalization.hpp>
#include <dist/nn/hlo/sequence_layers.hpp>
#include <dist/nn/hlo/traced_fit.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/hlo/traced_metric.hpp>
#include <dist/nn/hlo/traced_optimizer.hpp>
#include <dist/nn/hlo/traced_regularizer.hpp>
