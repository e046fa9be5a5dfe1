#include <dist/train/callbacks/early_stopping.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>

#include "small_model.hpp"

TEST_CASE("kept weights and layer states are restored") {
  small::Model trained;
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0});
  const support::Saved before{trained.strategy, trained.net};
  dist::nn::callbacks::detail::KeptWeights kept;
  CHECK(kept.is_empty());
  const dist::detail::AnyStrategyOf<small::Strategy> strategy{trained.strategy};
  const auto network = dist::detail::walk_of<decltype(trained.strategy.scope())>(trained.net);
  kept.keep(strategy, network);
  CHECK_FALSE(kept.is_empty());
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0});
  CHECK_FALSE(support::Saved{trained.strategy, trained.net} == before);
  kept.restore(strategy, network);
  CHECK(support::Saved{trained.strategy, trained.net} == before);
}
