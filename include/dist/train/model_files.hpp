/// Files of a Model, named like in Keras:
///
///     model.save("model");                     // the whole training state: a checkpoint of part "model"
///     model.load("model");                     // … training continues as if it had not stopped
///     model.save_weights("net.safetensors");   // weights and states for inference and evaluation
///     model.load_weights("net.safetensors");
///
/// The type of a network is its architecture, so a file fits any model of the same network, under any strategy and any
/// number of replicas and processes, or none. Evaluations and predictions are the same, and bitwise identical for the
/// same number of replicas (spec Q28). State per replica, like in `nn::BatchNormalization<nn::PerReplicaStatistics>`,
/// is saved as the mean over the replicas, and loaded by all of them.
#pragma once

#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/train/model.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::detail {

template <class S, class... Parts>
struct ModelFiles<Model<S, Parts...>> {
  using Of = Model<S, Parts...>;

  /// Saves the network, the optimizer with its slots and rate, the metrics and the number of epochs in the folder
  /// `path`, like callbacks::ModelCheckpoint. Throws like Checkpoint::save.
  static void save(Of& model, const std::string& path) {
    Checkpoint<S>{model.strategy()}.add("model", model).save(path);
  }
  /// Loads a checkpoint with a part "model", e.g. of `save` or ModelCheckpoint. Throws like Checkpoint::restore.
  static void load(Of& model, const std::string& path) {
    Checkpoint<S>{model.strategy()}.add("model", model).restore(path);
  }
  /// Saves the network alone, in a file for other programs. Throws like dist::save_weights.
  static void save_weights(Of& model, const std::string& path) {
    dist::save_weights(model.strategy(), model.network(), path);
  }
  /// Loads the network. Returns and throws like dist::load_weights, which is for networks without a model.
  static std::vector<std::string> load_weights(Of& model, const std::string& path,
                                               const LoadWeightsOptions& options = {}) {
    return dist::load_weights(model.strategy(), model.network(), path, options);
  }
};

}  // namespace dist::nn::detail
