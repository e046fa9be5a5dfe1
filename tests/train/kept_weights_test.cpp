#include <dist/train/kept_weights.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>

#include "callbacks/small_model.hpp"

TEST_CASE("weights that are kept go back to where they came from, with what layers keep besides") {
  small::Model trained;
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0});
  const support::Saved before{trained.strategy, trained.net};
  dist::nn::detail::KeptWeights kept;
  CHECK(kept.is_empty());
  kept.keep(trained.strategy.scope(), trained.net);
  CHECK_FALSE(kept.is_empty());
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0});
  CHECK_FALSE(support::Saved{trained.strategy, trained.net} == before);
  kept.restore(trained.strategy.scope(), trained.net);
  CHECK(support::Saved{trained.strategy, trained.net} == before);
}
