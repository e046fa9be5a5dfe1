/// The non-template code that needs only jansson; the CMake target dist::json compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::json, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/checkpoint/checkpoint.ipp>
#include <dist/checkpoint/checkpoint_manager.ipp>
#include <dist/checkpoint/checkpoint_reader.ipp>
#include <dist/checkpoint/folder.ipp>
#include <dist/checkpoint/manifest.ipp>
#include <dist/cluster/cloud_resolvers.ipp>
#include <dist/cluster/tf_config_resolver.ipp>
#include <dist/io/safetensors.ipp>
#include <dist/io/safetensors_writer.ipp>
#include <dist/train/callbacks/backup_and_restore.ipp>
#include <dist/train/callbacks/model_checkpoint.ipp>
