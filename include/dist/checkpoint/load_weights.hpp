#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/track.hpp>

namespace dist {

/// The source of one of our tensors in a file of another program, or of the same tensor of many blocks.
struct WeightSource {
  /// The key of the walk, "dense_1/kernel". `{}` stands for a decimal number, so that "h{}/query/kernel" covers the keys
  /// "h0/query/kernel", "h1/query/kernel" and so on. It does not stand for a missing number: "dense_{}/kernel" does not
  /// cover "dense/kernel". nn::Named gives blocks names such as "h0".
  std::string ours;
  /// The name in the file, "fc2.weight". Each `{}` of `ours` must have a `{}` here, which stands for the same number:
  /// "transformer.h.{}.attn.c_attn.weight".
  std::string theirs;
  /// The permutation of the file's axes, as for numpy.transpose; empty for the same order. For PyTorch's Linear, whose
  /// weight is [out, in], {1, 0}; for Conv2d, [out, in, height, width], {2, 3, 1, 0}.
  std::vector<std::size_t> axes = {};
  /// Reshapes the file's tensor before `axes` apply. The result may have another shape than ours, but the same number
  /// and order of elements. For example, a PyTorch Linear after a flattened image of 8 channels, 4 x 4, is reshaped to
  /// {out, 8, 4, 4}, and {2, 3, 1, 0} makes it the kernel for our image, whose channels are last. The weight of a
  /// depthwise Conv2d keeps its shape, and {2, 3, 0, 1} makes it the kernel of a DepthwiseConv2D.
  std::optional<Shape> seen_as = {};
  /// The range of the file's tensor along `rows_axis`, before all else. For PyTorch's MultiheadAttention of width E,
  /// {0, E}, {E, 2 * E} and {2 * E, 3 * E} of in_proj_weight and in_proj_bias are query, key and value.
  std::optional<IndexRange> rows = {};
  /// The axis of `rows` in the file's tensor. It is 1 for the query, key and value in GPT-2's c_attn.weight, [E, 3 * E].
  std::size_t rows_axis = 0;
};

/// Options of load_weights.
struct LoadWeightsOptions {
  /// Tensors with another name or layout in the file.
  std::vector<WeightSource> names = {};
  /// Our keys that keep their values, such as "dropout/seed_generator_state", which other programs do not have. `{}`
  /// stands for a number, as in WeightSource.
  std::vector<std::string> keep = {};
  /// True if unused tensors in the file, such as PyTorch's "num_batches_tracked", are returned instead of an error.
  bool ignore_superfluous = false;
};

namespace detail {

[[nodiscard]] std::vector<std::string> load_weights(const AnyStrategy& strategy, WalkLeaves walk,
                                                    const std::string& path, const LoadWeightsOptions& options);
/// Writes our tensors to the file `path` in the form of the file `like`, which `load_weights` reads with these options.
/// Throws the exceptions of load_weights, and InvalidArgument if `like` is an NPZ file or an element does not fit its
/// type.
void write_weights_like(const std::string& like, LoadWeightsOptions options, const std::string& path,
                        const Snapshot& ours);

}  // namespace detail

/// Loads the parts of `tracked` from a file, by their keys, or by the names in the options; see save_weights. The
/// format follows from the extension: .safetensors or .npz. The files that Hugging Face's model.safetensors.index.json
/// lists are read as one file: give the path of the index, or of its folder. For a network that was trained in PyTorch:
///
///     dist::load_weights(strategy, network, "state_dict.safetensors",
///                        {.names = {{"dense/kernel", "fc.weight", {1, 0}}, {"dense/bias", "fc.bias"}}});
///
/// Elements are converted to our type. All errors are thrown before any change: FileError if the file is damaged, lacks
/// a tensor or has an unused one, or an element does not fit our type; ShapeMismatch if a shape differs;
/// InvalidArgument for unknown keys or extensions. Returns the names of unused tensors, if the options ignore them.
///
/// A collective call of the processes, outside replica functions. Throws WrongStrategy if they read different files.
template <Strategy S, class Tracked>
std::vector<std::string> load_weights(S& strategy, Tracked& tracked, const std::string& path,
                                      const LoadWeightsOptions& options = {}) {
  if constexpr (detail::require_tracked<Tracked>()) {
    return detail::load_weights(detail::AnyStrategyOf<S>{strategy},
                                detail::walk_of<decltype(strategy.scope())>(tracked), path, options);
  } else {
    return {};
  }
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/load_weights.ipp>
#endif
