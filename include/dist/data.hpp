/// Datasets that need no optional package. Compressed files are in data/idx_gz.hpp, data/npz_slices.hpp,
/// data/tfrecord_gz.hpp and data/fashion_mnist.hpp, folders of images in data/image_folder.hpp.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/cache.hpp>
#include <dist/data/cifar.hpp>
#include <dist/data/csv.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/example.hpp>
#include <dist/data/files.hpp>
#include <dist/data/generator.hpp>
#include <dist/data/idx.hpp>
#include <dist/data/images.hpp>
#include <dist/data/index_shuffle.hpp>
#include <dist/data/interleave.hpp>
#include <dist/data/map.hpp>
#include <dist/data/npy_slices.hpp>
#include <dist/data/owned.hpp>
#include <dist/data/parallel_map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/preprocessing.hpp>
#include <dist/data/range.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/tf_example.hpp>
#include <dist/data/tfrecord.hpp>
#include <dist/data/token_file.hpp>
#include <dist/data/uploaded.hpp>
#include <dist/data/zip.hpp>
