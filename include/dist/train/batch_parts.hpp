#pragma once

#include <cstddef>
#include <tuple>

#include <dist/core/type_traits.hpp>

namespace dist::nn::detail {

template <class Batch>
concept HasFeaturesAndTargets = requires(const Batch& batch) {
  batch.x;
  batch.y;
};
template <class Batch>
concept IsTuple = requires {
  std::tuple_size<Batch>::value;
};

/// What Model reads of a dataset's element, in a tuple of references: what goes into the network, what should come out of
/// it, and how much each row counts where that is given. `needed` says how many of them there must be.
template <std::size_t needed, class Batch>
[[nodiscard]] constexpr auto parts_of_batch(const Batch& batch) {
  if constexpr (HasFeaturesAndTargets<Batch>) {
    return std::tie(batch.x, batch.y);
  } else if constexpr (IsTuple<Batch>) {
    constexpr std::size_t parts = std::tuple_size<Batch>::value;
    static_assert(
        parts >= needed && parts <= 3,
        "a dataset that a model is fitted to has elements of features and targets, or of features, targets and "
        "sample weights");
    return std::apply([](const auto&... part) { return std::tie(part...); }, batch);
  } else {
    static_assert(needed == 1 || dist::detail::always_false<Batch>,
                  "a dataset that a model is fitted to has elements with features x and targets y: make them "
                  "dist::data::Example{x, y} or std::tuple{x, y}, with dist::data::map before dist::data::batch");
    return std::tie(batch);
  }
}

}  // namespace dist::nn::detail
