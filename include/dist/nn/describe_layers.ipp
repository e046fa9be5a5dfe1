#pragma once

#include <algorithm>
#include <utility>

#include <dist/nn/describe_layers.hpp>

namespace dist::nn::detail {

DIST_INLINE std::vector<LayerDescription> describe(std::span<const std::string_view> leaves,
                                                   std::span<const LayerFacts> facts) {
  std::vector<std::string_view> taken;
  const auto unique = [&](std::string_view name) {  // a name that no earlier layer has
    const auto same = std::count(taken.begin(), taken.end(), name);
    taken.push_back(name);
    return same == 0 ? std::string{name} : concat(name, "_", same);
  };
  std::vector<std::string> names;
  for (const std::string_view leaf : leaves) names.push_back(unique(leaf));
  std::size_t next_leaf = 0;
  std::vector<LayerDescription> layers;
  std::string last;  // the name of the last layer
  struct Split {
    std::string input;
    std::vector<std::string> ends;
  };
  std::vector<Split> splits;
  for (const LayerFacts& fact : facts) {
    if (fact.kind == LayerFacts::split) splits.push_back({last, {}});
    if (fact.kind == LayerFacts::end_of_branch) splits.back().ends.push_back(std::exchange(last, splits.back().input));
    if (fact.kind != LayerFacts::layer && fact.kind != LayerFacts::join) continue;
    std::vector<std::string> inputs{last};
    if (fact.kind == LayerFacts::join) {
      inputs = std::move(splits.back().ends);
      splits.pop_back();
    }
    std::erase(inputs, std::string{});
    last = fact.kind == LayerFacts::join ? unique(fact.name) : names[next_leaf++];
    const auto extents = fact.output.extents();
    layers.push_back({.name = last,
                      .kind = std::string{fact.name.substr(fact.name.find_last_of('/') + 1)},
                      .output = {extents.begin(), extents.end()},
                      .parameters = fact.parameters,
                      .kept = fact.kept,
                      .blocks = fact.blocks,
                      .inputs = std::move(inputs)});
  }
  return layers;
}

}  // namespace dist::nn::detail

namespace dist::nn {

DIST_INLINE std::string summary(std::span<const LayerDescription> layers) {
  struct Row {
    std::string name, output, parameters;
  };
  std::vector<Row> rows{{"Layer", "Output shape", "Parameters"}};
  std::size_t learnt = 0;
  std::size_t kept = 0;
  for (const LayerDescription& layer : layers) {
    std::string output = "(rows";
    for (const std::size_t extent : layer.output) output += concat(", ", extent);
    std::string name = layer.name;
    if (layer.inputs.size() > 1)
      for (std::size_t i = 0; i < layer.inputs.size(); ++i) name += concat(i == 0 ? " of " : ", ", layer.inputs[i]);
    if (layer.blocks > 1) name += concat(" x ", layer.blocks);
    rows.push_back({std::move(name), output + ")", concat(layer.parameters + layer.kept)});
    learnt += layer.parameters;
    kept += layer.kept;
  }
  std::size_t widths[3] = {};
  for (const Row& row : rows) {
    widths[0] = std::max(widths[0], row.name.size());
    widths[1] = std::max(widths[1], row.output.size());
    widths[2] = std::max(widths[2], row.parameters.size());
  }
  const auto left = [](const std::string& cell, std::size_t width) {
    return cell + std::string(width - cell.size(), ' ');
  };
  std::string table;
  for (const Row& row : rows) {
    table += concat(left(row.name, widths[0]), "  ", left(row.output, widths[1]), "  ",
                    std::string(widths[2] - row.parameters.size(), ' '), row.parameters, "\n");
    if (&row == rows.data()) table += std::string(widths[0] + widths[1] + widths[2] + 4, '-') + "\n";
  }
  table += concat("Parameters: ", learnt + kept, " (trainable: ", learnt, ")\n");
  return table;
}

}  // namespace dist::nn
