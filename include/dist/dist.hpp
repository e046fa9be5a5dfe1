/// Strategies, their contexts and variables: all parts of a distributed program without a neural network or an
/// optional package. Datasets are in <dist/data.hpp>, networks in <dist/nn.hpp>, Model in <dist/train.hpp>.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/generator.hpp>
