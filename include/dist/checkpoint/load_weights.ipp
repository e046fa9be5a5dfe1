#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/weights_file.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/file.hpp>

namespace dist::detail {

/// Matches our keys with the names in the file.
class WeightNames {
 public:
  WeightNames(const WeightsFile& file, const LoadWeightsOptions& options)
      : file_(file), options_(options), left_(file.names()), present_(left_) {}

  /// The name and the source for one of our keys.
  struct Found {
    const WeightSource* source = nullptr;  // null if name and layout are ours
    std::string theirs;
  };
  /// Returns nothing if the key keeps its value, or is missing in the file, which `check` reports.
  [[nodiscard]] std::optional<Found> take(std::string_view key) {
    keys_.emplace_back(key);
    if (std::find(options_.keep.begin(), options_.keep.end(), key) != options_.keep.end()) return std::nullopt;
    Found found{nullptr, std::string{key}};
    for (const WeightSource& source : options_.names)
      if (source.ours == key) found = {&source, source.theirs};
    if (std::find(present_.begin(), present_.end(), found.theirs) == present_.end()) {
      missing_.push_back(found.theirs == key ? quoted(key) : concat(quoted(found.theirs), " for ", quoted(key)));
      return std::nullopt;
    }
    std::erase(left_, found.theirs);
    return found;
  }
  /// Throws if the options contain unknown keys, the file lacks tensors, or it has unused ones. Returns the unused ones
  /// if ignored.
  [[nodiscard]] std::vector<std::string> check() const {
    for (std::size_t i = 0; i < options_.names.size(); ++i) {
      require_key(options_.names[i].ours);
      for (std::size_t other = 0; other < i; ++other)
        if (options_.names[other].ours == options_.names[i].ours)
          throw InvalidArgument(
              concat("LoadWeightsOptions::names has two sources for ", quoted(options_.names[i].ours)),
              concat(quoted(options_.names[other].theirs), " and ", quoted(options_.names[i].theirs)),
              "Keep one of them");
    }
    for (const std::string& key : options_.keep) require_key(key);
    if (!missing_.empty())
      throw FileError(
          file_.path(), concat("lacks weights: ", joined(missing_)), io::listed_names(present_),
          "Give their names in the file in LoadWeightsOptions::names, or list them in LoadWeightsOptions::keep");
    if (!left_.empty() && !options_.ignore_superfluous) {
      std::vector<std::string> superfluous;
      for (const std::string& name : left_) superfluous.push_back(quoted(name));
      throw FileError(file_.path(), concat("has unused weights: ", joined(superfluous)), "no key matches them",
                      "Load it into the network that it belongs to, or set LoadWeightsOptions::ignore_superfluous");
    }
    return left_;
  }

 private:
  /// Joins the first ten.
  [[nodiscard]] static std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t listed = 10;
    const std::span<const std::string> all{names};
    std::string first = dist::joined(all.first(std::min(listed, all.size())));
    return all.size() > listed ? concat(first, " and ", all.size() - listed, " more") : first;
  }
  void require_key(const std::string& key) const {
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end())
      throw InvalidArgument(concat("The options of load_weights name ", quoted(key), ", which is not a key"),
                            concat("the keys are ", joined(keys_)), "Use one of these keys");
  }

  const WeightsFile& file_;
  const LoadWeightsOptions& options_;
  std::vector<std::string> left_;  // unused, in the file
  std::vector<std::string> present_;
  std::vector<std::string> keys_;
  std::vector<std::string> missing_;
};

/// Returns a range of rows of a tensor in the file. Throws ShapeMismatch if it is out of range.
[[nodiscard]] inline AnyTensor rows_of(AnyTensor values, IndexRange rows, const WeightsFile& file,
                                       const WeightNames::Found& found) {
  const Shape& shape = values.shape;
  if (shape.rank() == 0 || rows.begin > rows.end || rows.end > shape[0])
    throw ShapeMismatch(
        concat(quoted(found.theirs), " of the file '", file.path(), "' has no rows ", rows.begin, " to ", rows.end),
        concat("its shape is ", to_string(shape)), "Use rows that its first axis has");
  const std::size_t row_bytes = shape.row().elements() * io::bytes_of(values.type);
  values.bytes = values.bytes.subspan(rows.begin * row_bytes, rows.size() * row_bytes);
  values.shape = shape.row().stacked(rows.size());
  return values;
}

/// Returns the tensor from the file in our layout and type. Throws ShapeMismatch if the shape differs.
[[nodiscard]] inline AnyTensor weights_for(std::string_view key, const AnyLeaf& leaf, const WeightsFile& file,
                                           const WeightNames::Found& found) {
  AnyTensor values = file.read(found.theirs, leaf.type());
  const WeightSource* const source = found.source;
  if (source != nullptr && source->rows) values = rows_of(std::move(values), *source->rows, file, found);
  if (source != nullptr && source->seen_as) {
    if (source->seen_as->elements() != values.shape.elements())
      throw ShapeMismatch(concat(quoted(found.theirs), " of the file '", file.path(), "' cannot be reshaped to ",
                                 to_string(*source->seen_as)),
                          concat("its shape is ", to_string(values.shape)),
                          "Use a shape with the same number of elements");
    values.shape = *source->seen_as;
  }
  if (source != nullptr && !source->axes.empty()) values = values.transposed(source->axes);
  if (const std::optional<Shape> wanted = leaf.shape()) {
    if (source != nullptr && source->seen_as && values.shape.elements() == wanted->elements()) values.shape = *wanted;
    if (values.shape != *wanted)
      throw ShapeMismatch(
          concat(quoted(key), " does not have the shape of ", quoted(found.theirs), " of the file '", file.path(), "'"),
          concat("it is ", to_string(*wanted), ", the file's is ", to_string(values.shape),
                 source != nullptr && !source->axes.empty() ? " after the permutation of its axes" : ""),
          "Load it into the network that it belongs to, or give the order of its axes in "
          "LoadWeightsOptions::names");
  }
  leaf.require_restorable(values.shape);
  return values;
}

DIST_INLINE std::vector<std::string> load_weights(const AnyStrategy& strategy, WalkLeaves walk, const std::string& path,
                                                  const LoadWeightsOptions& options) {
  std::vector<AnyTensor> loaded;  // in the order of the walk; without owner if the key keeps its value
  std::vector<std::string> superfluous;
  strategy.run_collectively([&] {
    const WeightsFile file{path};
    WeightNames names{file, options};
    std::vector<std::optional<WeightNames::Found>> found;
    walk([&](std::string_view key, AnyLeaf&, bool) { found.push_back(names.take(key)); });
    superfluous = names.check();
    std::uint32_t checksum = 0;
    walk([&](std::string_view key, AnyLeaf& leaf, bool) {
      const auto& source = found[loaded.size()];
      AnyTensor& values = loaded.emplace_back();
      if (!source) return;
      values = weights_for(key, leaf, file, *source);
      checksum = io::crc32c(values.bytes, checksum);
    });
    std::uint64_t of_first[1] = {checksum};
    strategy.broadcast(of_first);
    if (of_first[0] != checksum)
      throw WrongStrategy("Processes load different weights",
                          "the file of this process differs from the file of the first process",
                          "Load the same file in all processes");
    strategy.barrier();  // no process begins before all have checked
  });
  strategy.run_collectively([&] {
    strategy.in_scope([&](const void* scope) {
      std::size_t next = 0;
      walk([&](std::string_view, AnyLeaf& leaf, bool) {
        const AnyTensor& values = loaded[next++];
        if (values.owner != nullptr) leaf.restore(scope, values);
      });
    });
  });
  return superfluous;
}

}  // namespace dist::detail
