#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/core/track.hpp>
#include <dist/nn/describe_layers.hpp>
#include <dist/summary/graph.hpp>
#include <dist/summary/writer.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct TensorBoardOptions {
  /// After every so many epochs, histograms of all that the network has learnt; 0: never.
  std::size_t histogram_freq = 0;
  /// Whether the network's layers are written as a graph, where they are known.
  bool write_graph = true;
  /// After every so many training batches, the logs of that time as "batch_<name>". None: after epochs only, as it must be under
  /// a ParameterServer (spec Q24).
  std::optional<std::size_t> update_freq = std::nullopt;
};

/// Writes what TensorBoard shows, under Keras' tags (spec Q22), to "<folder>/train" and "<folder>/validation": after each
/// epoch "epoch_<name>" of the logs and "epoch_learning_rate", after each evaluation "evaluation_<name>_vs_iterations" by
/// the steps of the optimizer, and what its options ask for besides. The chief writes. Other callbacks write to the same
/// folders, in all processes alike, and only what the chief writes is there:
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

  explicit TensorBoard(std::string folder, TensorBoardOptions options = {})
      : folder_(std::move(folder)), options_(options), every_(options.update_freq, "TensorBoardOptions.update_freq") {}

  /// What writes to "<folder>/<run>", which TensorBoard takes for a run, or, without a name, to the folder itself, where
  /// hyperparameters belong. The chief's writes; those of other processes take the same calls and write nothing. Stays until
  /// the TensorBoard goes. Throws FileError where the folder cannot be written.
  summary::Writer& writer(const auto& model, std::string_view run = {}) {
    for (const auto& [of_run, made] : writers_)
      if (of_run == run) return *made;
    auto made = model.is_chief() ? std::make_unique<summary::Writer>(run.empty() ? folder_ : concat(folder_, "/", run))
                                 : std::make_unique<summary::Writer>();
    return *writers_.emplace_back(run, std::move(made)).second;
  }

  /// Throws FileError where the folder cannot be written, as the next hooks do, and InvalidArgument for an `update_freq` where
  /// nobody sees training batches.
  void on_train_begin(auto& model) {
    detail::require_calls_between_batches(model, static_cast<bool>(every_), "TensorBoardOptions.update_freq");
    auto& train = writer(model, "train");
    if constexpr (KnowsLayers<std::remove_cvref_t<decltype(model.network())>>)
      if (options_.write_graph && !std::exchange(has_graph_, true))
        train.graph(nodes_of(describe_layers<typename std::remove_cvref_t<decltype(model.network())>::Architecture>()));
  }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(auto& model, std::size_t step, CurrentLogs logs) {
    if (!every_.end(step) || !model.is_chief()) return;
    for (const Logs::Entry& entry : logs())
      writer(model, "train").scalar("batch_" + entry.name, entry.value, static_cast<std::int64_t>(every_.seen()));
  }
  void on_epoch_end(auto& model, const Epoch& epoch, const Logs& logs) {
    const auto step = static_cast<std::int64_t>(epoch.index);
    auto& train = writer(model, "train");
    constexpr std::string_view of_validation = "val_";
    for (const Logs::Entry& entry : logs)
      if (entry.name.starts_with(of_validation))
        writer(model, "validation").scalar("epoch_" + entry.name.substr(of_validation.size()), entry.value, step);
      else
        train.scalar("epoch_" + entry.name, entry.value, step);
    train.scalar("epoch_learning_rate", static_cast<double>(model.optimizer().learning_rate()), step);
    if (options_.histogram_freq > 0 && epoch.index % options_.histogram_freq == 0) write_histograms(model, train, step);
    flush();
  }
  void on_train_end(const Logs&) { flush(); }

  void on_test_end(auto& model, std::size_t, const Logs& logs) {
    const std::int64_t iterations = model.optimizer().iterations(model.strategy().scope());
    for (const Logs::Entry& entry : logs)
      writer(model, "validation").scalar(concat("evaluation_", entry.name, "_vs_iterations"), entry.value, iterations);
    flush();
  }

  /// See Trackable.
  void track(auto& visit) { every_.track(visit); }

 private:
  /// All processes read the weights, which may take all of them.
  static void write_histograms(auto& model, summary::Writer& train, std::int64_t step) {
    const auto scope = model.strategy().scope();
    walk(model.network(), [&](std::string_view key, auto& leaf) { train.histogram(key, leaf.whole(scope), step); });
  }
  [[nodiscard]] static std::vector<summary::Node> nodes_of(const std::vector<LayerDescription>& layers) {
    std::vector<summary::Node> nodes{{.name = "input", .op = "Placeholder"}};
    for (const LayerDescription& layer : layers) {
      summary::Node node{.name = layer.name, .op = layer.kind, .inputs = layer.inputs, .shape = {-1}};
      if (node.inputs.empty()) node.inputs.push_back("input");
      for (const std::size_t extent : layer.output) node.shape.push_back(static_cast<std::int64_t>(extent));
      node.attributes.emplace_back("parameters", concat(layer.parameters + layer.kept));
      nodes.push_back(std::move(node));
    }
    return nodes;
  }
  void flush() {
    for (const auto& [run, writer] : writers_) writer->flush();
  }

  std::string folder_;
  TensorBoardOptions options_;
  detail::EveryBatches every_;
  std::vector<std::pair<std::string, std::unique_ptr<summary::Writer>>> writers_;  // by their runs
  bool has_graph_ = false;
};

}  // namespace dist::nn::callbacks
