#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/nn/describe_layers.hpp>
#include <dist/summary/writer.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// The options of TensorBoard.
struct TensorBoardOptions {
  /// The number of epochs between histograms of the network's weights; 0: never.
  std::size_t histogram_freq = 0;
  /// True to write the graph of the network's layers, if known.
  bool write_graph = true;
  /// The number of training batches between values `batch_<name>` of the logs. Empty: none, as required under a
  /// ParameterServer (spec Q24).
  std::optional<std::size_t> update_freq = std::nullopt;
};

/// Writes values for TensorBoard, with Keras' tags (spec Q22), to `<folder>/train` and `<folder>/validation`:
/// `epoch_<name>` of the logs and `epoch_learning_rate` after each epoch, `evaluation_<name>_vs_iterations` by
/// optimizer steps after each evaluation, and optional values. Other callbacks can write to the same folders. They make
/// the same calls in all processes, but only the chief writes:
///
///     struct ShowsImages {
///       nn::callbacks::TensorBoard& board;
///       void on_epoch_end(auto& model, const nn::Epoch& epoch, const nn::Logs&) {
///         board.writer(model, "train").image("examples", image, epoch.index);
///       }
///     };
class TensorBoard {
 public:
  static constexpr std::string_view name = "TensorBoard";
  static constexpr std::string_view adds_to_logs = "";

  /// Writes the runs to folders in `folder`.
  explicit TensorBoard(std::string folder, TensorBoardOptions options = {})
      : folder_(std::move(folder)), options_(options), every_(options.update_freq, "TensorBoardOptions.update_freq") {}

  /// Returns the writer of `<folder>/<run>`, a run in TensorBoard, or, without a name, of the folder itself, for
  /// hyperparameters. In processes other than the chief it writes nothing. Valid as long as the TensorBoard. Throws
  /// FileError if the folder cannot be written.
  summary::Writer& writer(const ModelView& model, std::string_view run = {});

  /// Throws FileError if the folder cannot be written, like the other hooks, and InvalidArgument for an `update_freq`
  /// if callbacks are not called between training batches.
  void on_train_begin(auto& model) {
    using Network = std::remove_cvref_t<decltype(model.network())>;
    if constexpr (KnowsLayers<Network>)
      begin(model, describe_layers<typename Network::Architecture>);
    else
      begin(model, nullptr);
  }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(ModelView& model, std::size_t step, CurrentLogs logs);
  void on_epoch_end(auto& model, const Epoch& epoch, const Logs& logs) {
    end_epoch(model, dist::detail::walk_of<decltype(model.strategy().scope())>(model.network()), epoch, logs);
  }
  void on_train_end(const Logs&) { flush(); }

  void on_test_end(ModelView& model, std::size_t, const Logs& logs);

  /// See Trackable.
  void track(auto& visit) { every_.track(visit); }

 private:
  using Layers = std::vector<LayerDescription> (*)();

  /// `layers` is nullptr if unknown.
  void begin(ModelView& model, Layers layers);
  void end_epoch(ModelView& model, dist::detail::WalkLeaves network, const Epoch& epoch, const Logs& logs);
  [[nodiscard]] static std::vector<summary::Node> nodes_of(const std::vector<LayerDescription>& layers);
  void flush();

  std::string folder_;
  TensorBoardOptions options_;
  detail::EveryBatches every_;
  std::vector<std::pair<std::string, std::unique_ptr<summary::Writer>>> writers_;  // with their runs
  bool has_graph_ = false;
};

}  // namespace dist::nn::callbacks

#ifndef DIST_COMPILED
#include <dist/train/callbacks/tensor_board.ipp>
#endif
