#pragma once

#include <cstddef>
#include <string_view>

#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/group_normalization_operation.hpp>
#include <dist/nn/layers/scale_and_shift.hpp>

namespace dist::nn {

/// What Keras' GroupNormalization takes as an argument. To change it, derive and name it again.
struct GroupNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Normalises each group of channels, the last axis, over the axes before it: Wu, He: "Group normalization", ECCV 2018. As
/// many groups as channels is instance normalisation.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows do not influence each other, so training and inference are the same, with any number of replicas.
template <std::size_t Groups, class Options = GroupNormalizationOptions>
struct GroupNormalization {
  static_assert(Groups > 0, "nn::GroupNormalization needs at least one group");
  static_assert(Options::epsilon > 0, "nn::GroupNormalization needs an epsilon above 0, as a variance may be 0");

  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(In::rank > 0,
                  "nn::GroupNormalization normalises along the last axis, and its input has no axis: put nn::Reshape "
                  "before it");
    using Geometry = detail::GroupGeometry<In, Groups, true>;
    static_assert(
        Geometry::channels % Groups == 0,
        "nn::GroupNormalization divides the channels of its input into groups of equal size: give a number of "
        "groups that divides the number of channels");
    using Layer = GroupNormalization;
    using Output = In;
    static constexpr std::string_view name = "group_normalization";
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GroupNormalization<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::GroupNormalizationOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, Options, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::GroupNormalization: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
