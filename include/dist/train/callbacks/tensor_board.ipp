#pragma once

#include <cstdint>

#include <dist/core/text.hpp>
#include <dist/io/elements.hpp>
#include <dist/train/callbacks/tensor_board.hpp>

namespace dist::nn::callbacks {

DIST_INLINE summary::Writer& TensorBoard::writer(const ModelView& model, std::string_view run) {
  for (const auto& [of_run, made] : writers_)
    if (of_run == run) return *made;
  auto made = model.is_chief() ? std::make_unique<summary::Writer>(run.empty() ? folder_ : concat(folder_, "/", run))
                               : std::make_unique<summary::Writer>();
  return *writers_.emplace_back(run, std::move(made)).second;
}

DIST_INLINE void TensorBoard::begin(ModelView& model, Layers layers) {
  detail::require_calls_between_batches(model, static_cast<bool>(every_), "TensorBoardOptions.update_freq");
  auto& train = writer(model, "train");
  if (layers != nullptr && options_.write_graph && !std::exchange(has_graph_, true)) train.graph(nodes_of(layers()));
}

DIST_INLINE void TensorBoard::on_train_batch_end(ModelView& model, std::size_t step, CurrentLogs logs) {
  if (!every_.end(step) || !model.is_chief()) return;
  for (const Logs::Entry& entry : logs())
    writer(model, "train").scalar("batch_" + entry.name, entry.value, static_cast<std::int64_t>(every_.seen()));
}

DIST_INLINE void TensorBoard::end_epoch(ModelView& model, dist::detail::WalkLeaves network, const Epoch& epoch,
                                        const Logs& logs) {
  const auto step = static_cast<std::int64_t>(epoch.index);
  auto& train = writer(model, "train");
  constexpr std::string_view of_validation = "val_";
  for (const Logs::Entry& entry : logs)
    if (entry.name.starts_with(of_validation))
      writer(model, "validation").scalar("epoch_" + entry.name.substr(of_validation.size()), entry.value, step);
    else
      train.scalar("epoch_" + entry.name, entry.value, step);
  train.scalar("epoch_learning_rate", static_cast<double>(model.learning_rate()), step);
  if (options_.histogram_freq > 0 && epoch.index % options_.histogram_freq == 0) {
    // All processes read the weights, because that may be collective.
    model.any_strategy().in_scope([&](const void* scope) {
      network([&](std::string_view key, dist::detail::AnyLeaf& leaf, bool) {
        const dist::detail::AnyTensor values = leaf.whole(scope);
        std::vector<double> numbers(values.shape.elements());  // in double precision
        static_cast<void>(io::detail::convert_elements(values.type, values.bytes.data(), io::ElementType::f64,
                                                       std::as_writable_bytes(std::span{numbers}).data(),
                                                       numbers.size()));
        train.histogram(key, numbers, step);
      });
    });
  }
  flush();
}

DIST_INLINE void TensorBoard::on_test_end(ModelView& model, std::size_t, const Logs& logs) {
  const std::int64_t iterations = model.iterations();
  for (const Logs::Entry& entry : logs)
    writer(model, "validation").scalar(concat("evaluation_", entry.name, "_vs_iterations"), entry.value, iterations);
  flush();
}

DIST_INLINE std::vector<summary::Node> TensorBoard::nodes_of(const std::vector<LayerDescription>& layers) {
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

DIST_INLINE void TensorBoard::flush() {
  for (const auto& [run, writer] : writers_) writer->flush();
}

}  // namespace dist::nn::callbacks
