/// Steps that XLA compiles as a whole, for TPUs and whatever else has a PJRT plugin: Tpu, the same under Mirrored and OneDevice
/// by XlaAllReduce and Xla, and what a step computes with besides operators. Datasets are in <dist/data.hpp>. Needs PyPI's
/// xla-cpu-pjrt, which has PJRT's header.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/core/error.hpp>  // what callers catch
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/strategy/tpu.hpp>
