/// Files of a Model, under Keras' names:
///
///     model.save("model");                     // all that outlives a run: a checkpoint of part "model"
///     model.load("model");                     // … training goes on as if it had not stopped
///     model.save_weights("net.safetensors");   // what inference and evaluation need: the network's weights and states
///     model.load_weights("net.safetensors");
///
/// A network's type is its architecture, so a file is loaded into a model of the same network, under any strategy, with any
/// number of replicas and processes, or with none: it evaluates and predicts alike, and with as many replicas to the bit
/// (spec Q28). What each replica keeps of its own, as nn::BatchNormalization<nn::PerReplicaStatistics> does, is saved as the
/// mean of the replicas, and loaded by all.
#pragma once

#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/train/has_model_files.hpp>
#include <dist/train/model.hpp>

namespace dist::nn::detail {

template <class S, class... Parts>
struct ModelFiles<Model<S, Parts...>> {
  using Of = Model<S, Parts...>;

  /// The network, the optimizer with its slots and rate, the metrics and the number of epochs, in the folder `path`, as
  /// callbacks::ModelCheckpoint saves them. Throws as Checkpoint::save.
  static void save(Of& model, const std::string& path) {
    Checkpoint<S>{model.strategy()}.add("model", model).save(path);
  }
  /// What `save`, a ModelCheckpoint or a Checkpoint with such a part has written. Throws as Checkpoint::restore.
  static void load(Of& model, const std::string& path) {
    Checkpoint<S>{model.strategy()}.add("model", model).restore(path);
  }
  /// The network alone, in a file that other programs read. Throws as dist::save_weights.
  static void save_weights(Of& model, const std::string& path) {
    dist::save_weights(model.strategy(), model.network(), path);
  }
  /// Returns and throws as dist::load_weights, which a program calls that has a network and no model.
  static std::vector<std::string> load_weights(Of& model, const std::string& path,
                                               const LoadWeightsOptions& options = {}) {
    return dist::load_weights(model.strategy(), model.network(), path, options);
  }
};

}  // namespace dist::nn::detail
