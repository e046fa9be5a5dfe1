#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/weights_file.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/core/transpose.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/file.hpp>

namespace dist {

/// Where a file of another program has the elements of one of our tensors.
struct WeightSource {
  std::string ours;    ///< the key of the walk, "dense_1/kernel"
  std::string theirs;  ///< the name in the file, "fc2.weight"
  /// The order in which ours has the axes of theirs, as numpy.transpose takes it; empty for the same order. Of PyTorch's
  /// Linear, whose weight is [out, in], {1, 0}; of its Conv2d, [out, in, height, width], {2, 3, 1, 0}.
  std::vector<std::size_t> axes = {};
  /// The shape under which theirs is seen before `axes` apply, of as many elements. The result may then have another shape
  /// than ours, and as many elements in the same order. So the Linear behind a flattened image of 8 channels, 4 x 4, is seen
  /// as {out, 8, 4, 4}, and {2, 3, 1, 0} makes it the kernel behind our image, whose channels come last; and the weight of a
  /// Conv2d with a group for each channel is seen as it is, and {2, 3, 0, 1} makes it a DepthwiseConv2D's.
  std::optional<Shape> seen_as = {};
  /// The part of theirs along its first axis, before all else. Of PyTorch's MultiheadAttention of width E, {0, E}, {E, 2 * E}
  /// and {2 * E, 3 * E} of in_proj_weight and in_proj_bias are those of the query, the key and the value.
  std::optional<IndexRange> rows = {};
};

struct LoadWeightsOptions {
  /// Where to find what the file has under another name, or in another layout.
  std::vector<WeightSource> names = {};
  /// Our keys that keep what they have, such as "dropout/seed_generator_state", which no other program has.
  std::vector<std::string> keep = {};
  /// Whether tensors that nothing takes are returned instead of refused, such as PyTorch's "num_batches_tracked".
  bool ignore_superfluous = false;
};

namespace detail {

/// The bookkeeping of a load: which of our keys goes with which name of the file.
class WeightNames {
 public:
  WeightNames(const WeightsFile& file, const LoadWeightsOptions& options)
      : file_(file), options_(options), left_(file.names()), present_(left_) {}

  /// What the options say of one of our keys.
  struct Found {
    const WeightSource* source = nullptr;  // none where name and layout are ours
    std::string theirs;
  };
  /// None where the key keeps what it has, or the file lacks it, which `check` says.
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
  /// Throws for options that name what there is not, for what the file lacks, and for what nobody takes. Returns the last.
  [[nodiscard]] std::vector<std::string> check() const {
    for (std::size_t i = 0; i < options_.names.size(); ++i) {
      require_key(options_.names[i].ours);
      for (std::size_t other = 0; other < i; ++other)
        if (options_.names[other].ours == options_.names[i].ours)
          throw InvalidArgument(concat("Two sources of weights are named for ", quoted(options_.names[i].ours)),
                                concat(quoted(options_.names[other].theirs), " and ", quoted(options_.names[i].theirs)),
                                "Name one of them");
    }
    for (const std::string& key : options_.keep) require_key(key);
    if (!missing_.empty())
      throw FileError(file_.path(), concat("lacks weights: ", joined(missing_)), io::listed_names(present_),
                      "Say in LoadWeightsOptions::names under which names the file has them, or name them in `keep`");
    if (!left_.empty() && !options_.ignore_superfluous) {
      std::vector<std::string> superfluous;
      for (const std::string& name : left_) superfluous.push_back(quoted(name));
      throw FileError(file_.path(), concat("has weights that nothing takes: ", joined(superfluous)),
                      "they have no place here",
                      "Load it into the network that it is of, or set LoadWeightsOptions::ignore_superfluous");
    }
    return left_;
  }

 private:
  /// The first ten.
  [[nodiscard]] static std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t listed = 10;
    std::string all;
    for (std::size_t i = 0; i < names.size() && i < listed; ++i) all += concat(all.empty() ? "" : ", ", names[i]);
    if (names.size() > listed) all += concat(" and ", names.size() - listed, " more");
    return all;
  }
  void require_key(const std::string& key) const {
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end())
      throw InvalidArgument(concat("The options of load_weights name ", quoted(key), ", which is not there"),
                            concat("the keys are ", joined(keys_)), "Use one of these keys");
  }

  const WeightsFile& file_;
  const LoadWeightsOptions& options_;
  std::vector<std::string> left_;     // in the file, and taken by nobody so far
  std::vector<std::string> present_;  // in the file
  std::vector<std::string> keys_;
  std::vector<std::string> missing_;
};

/// A part of a tensor of the file along its first axis. Throws ShapeMismatch where that has not so many.
template <class T>
[[nodiscard]] Tensor<T> rows_of(const Tensor<T>& values, IndexRange rows, const WeightsFile& file,
                                const WeightNames::Found& found) {
  const Shape& shape = values.shape();
  if (shape.rank() == 0 || rows.begin > rows.end || rows.end > shape[0])
    throw ShapeMismatch(
        concat(quoted(found.theirs), " of the file '", file.path(), "' has no rows ", rows.begin, " to ", rows.end),
        concat("its shape is ", to_string(shape)), "Name rows that its first axis has");
  const Shape row = shape.row();
  return Tensor<T>{TensorView<const T>{values.data() + rows.begin * row.elements(), row.stacked(rows.size())}};
}

/// The tensor of the file in the layout of ours, whose shape is `wanted`; none where any will do. Throws ShapeMismatch where
/// it has another one.
template <class T>
[[nodiscard]] Tensor<T> weights_for(std::string_view key, const std::optional<Shape>& wanted, const WeightsFile& file,
                                    const WeightNames::Found& found) {
  const auto refuse = [&](const Shape& shape, std::string_view how) {
    throw ShapeMismatch(
        concat(quoted(key), " has another shape than ", quoted(found.theirs), " of the file '", file.path(), "'"),
        concat("it is ", to_string(*wanted), ", the file's is ", to_string(shape), how),
        "Load it into the network that it is of, or say in LoadWeightsOptions::names in which order its axes "
        "are");
  };
  Tensor<T> values = file.read<T>(found.theirs);
  const WeightSource* const source = found.source;
  if (source != nullptr && source->rows) values = rows_of(values, *source->rows, file, found);
  if (source != nullptr && source->seen_as) {
    if (source->seen_as->elements() != values.size())
      throw ShapeMismatch(concat(quoted(found.theirs), " of the file '", file.path(), "' cannot be seen as ",
                                 to_string(*source->seen_as)),
                          concat("its shape is ", to_string(values.shape())), "Name a shape of as many elements");
    values = Tensor<T>{TensorView<const T>{values.data(), *source->seen_as}};
  }
  if (source != nullptr && !source->axes.empty()) values = transpose(values, source->axes);
  if (!wanted) return values;
  if (source != nullptr && source->seen_as && values.size() == wanted->elements())
    values = Tensor<T>{TensorView<const T>{values.data(), *wanted}};
  if (values.shape() != *wanted)
    refuse(values.shape(), source != nullptr && !source->axes.empty() ? " by its axes" : "");
  return values;
}

/// All processes have read the same.
template <class S>
void require_same_weights(S& strategy, std::uint32_t checksum) {
  std::uint32_t of_first = checksum;
  strategy.workers().broadcast(0, std::span<std::uint32_t>{&of_first, 1});
  if (of_first != checksum)
    throw WrongStrategy("Processes load different weights",
                        "a file of this process has others than that of the first one",
                        "Let all of them load the same file");
}

}  // namespace detail

/// Gives all that `tracked` names what a file has under its keys, or under the names that the options say; see save_weights.
/// The end of the name says the format: .safetensors or .npz. A network that was trained in PyTorch:
///
///     dist::load_weights(strategy, network, "state_dict.safetensors",
///                        {.names = {{"dense/kernel", "fc.weight", {1, 0}}, {"dense/bias", "fc.bias"}}});
///
/// Elements are converted to the type of ours. Nothing changes unless everything fits: throws FileError where the file is
/// not sound, lacks a tensor or has one that nothing takes, and where an element has no number of our type; ShapeMismatch
/// for another shape; InvalidArgument for a key that is not there, or a name of another kind. Returns the names that nothing
/// took, where the options ignore them.
///
/// A collective call of the processes, outside replica functions; all of them read the file, and WrongStrategy says that
/// they have read different ones.
template <Strategy S, class Tracked>
std::vector<std::string> load_weights(S& strategy, Tracked& tracked, const std::string& path,
                                      const LoadWeightsOptions& options = {}) {
  if constexpr (detail::require_tracked<Tracked>()) {
    using Scope = decltype(strategy.scope());
    std::vector<std::shared_ptr<const void>> loaded;  // in the order of the walk; none for what keeps its values
    auto superfluous = detail::run_collectively(strategy, [&] {
      const detail::WeightsFile file{path};
      detail::WeightNames names{file, options};
      std::vector<std::optional<detail::WeightNames::Found>> found;
      walk(tracked, [&](std::string_view key, auto&) { found.push_back(names.take(key)); });
      auto left = names.check();
      std::uint32_t checksum = 0;
      walk(tracked, [&]<class Leaf>(std::string_view key, Leaf& leaf) {
        const auto& source = found[loaded.size()];
        loaded.emplace_back();
        if (!source) return;
        std::optional<Shape> shape;
        if constexpr (detail::ShapedLeaf<Leaf>)
          shape = leaf.shape();
        else if constexpr (!detail::WholeLeaf<Leaf, Scope>)
          shape = Shape{};
        using T = detail::LeafElement<Leaf, Scope>;
        auto values = std::make_shared<const Tensor<T>>(detail::weights_for<T>(key, shape, file, *source));
        if constexpr (detail::ChecksShape<Leaf>) leaf.require_restorable(values->shape());
        checksum = io::crc32c(std::as_bytes(std::span<const T>{values->data(), values->size()}), checksum);
        loaded.back() = std::move(values);
      });
      detail::require_same_weights(strategy, checksum);
      strategy.workers().communicator().barrier();  // nobody begins before all have looked
      return left;
    });
    detail::run_collectively(strategy, [&] {
      auto scope = strategy.scope();
      std::size_t next = 0;
      walk(tracked, [&]<class Leaf>(std::string_view, Leaf& leaf) {
        const std::shared_ptr<const void>& values = loaded[next++];
        if (values)
          detail::restore_leaf(leaf, scope,
                               *static_cast<const Tensor<detail::LeafElement<Leaf, Scope>>*>(values.get()));
      });
    });
    return superfluous;
  } else {
    return {};
  }
}

}  // namespace dist
