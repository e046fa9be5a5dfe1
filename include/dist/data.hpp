/// Datasets, as far as they need no optional package. Compressed files are in data/idx_gz.hpp and
/// data/fashion_mnist.hpp.
#pragma once

#include <dist/data/batch.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/idx.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/repeat.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
