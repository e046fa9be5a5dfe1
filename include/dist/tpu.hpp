/// Steps compiled as a whole by XLA, for TPUs and all other devices with a PJRT plugin: the strategy Tpu,
/// XlaAllReduce and Xla for Mirrored and OneDevice, and the functions of traced steps. Datasets are in
/// <dist/data.hpp>. Needs PJRT's header, which PyPI's package xla-cpu-pjrt contains.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/strategy/tpu.hpp>
