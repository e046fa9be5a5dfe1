#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/check.hpp>

namespace dist::nn {

/// A learning rate of values[0] up to and including step boundaries[0], of values[1] up to and including boundaries[1], and
/// so on; after the last boundary of the last value (Keras' PiecewiseConstantDecay). Without boundaries it is a constant.
/// See LearningRateSchedule.
struct PiecewiseConstant {
  std::vector<std::int64_t> boundaries;
  std::vector<float> values;

  /// Throws InvalidArgument.
  void check() const {
    if (values.size() != boundaries.size() + 1)
      throw InvalidArgument("PiecewiseConstant has a wrong number of values",
                            text("there are ", values.size(), " values and ", boundaries.size(), " boundaries"),
                            "Give one value more than boundaries");
    for (std::size_t i = 1; i < boundaries.size(); ++i)
      if (boundaries[i] <= boundaries[i - 1])
        throw InvalidArgument("PiecewiseConstant.boundaries do not increase",
                              text(boundaries[i], " follows ", boundaries[i - 1]), "Give steps in increasing order");
    for (const float value : values) detail::require_not_negative("PiecewiseConstant", "values", value);
  }
  [[nodiscard]] double operator()(std::int64_t step) const {
    std::size_t piece = 0;
    while (piece < boundaries.size() && step > boundaries[piece]) ++piece;
    return double{values[piece]};
  }
};

}  // namespace dist::nn
