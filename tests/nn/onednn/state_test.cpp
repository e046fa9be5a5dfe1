#include <dist/nn/onednn/state.hpp>

#include <doctest/doctest.h>

TEST_CASE("entered, oneDNN has one thread; afterwards the host's OpenMP setting is back") {
  dist::nn::onednn::State state;
  omp_set_num_threads(2);
  {
    const auto entered = state.enter();
    CHECK(omp_get_max_threads() == 1);
  }
  CHECK(omp_get_max_threads() == 2);
}

TEST_CASE("the scratchpad grows and does not shrink") {
  dist::nn::onednn::State state;
  CHECK(state.scratchpad() == nullptr);
  state.reserve_scratchpad(100);
  const void* const first = state.scratchpad();
  CHECK(first != nullptr);
  state.reserve_scratchpad(50);
  CHECK(state.scratchpad() == first);
}

TEST_CASE("the memory for copies is another than the scratchpad, grows and does not shrink") {
  dist::nn::onednn::State state;
  CHECK(state.copy() == nullptr);
  state.reserve_scratchpad(100);
  state.reserve_copy(100);
  const void* const first = state.copy();
  CHECK(first != nullptr);
  CHECK(first != state.scratchpad());
  state.reserve_copy(50);
  CHECK(state.copy() == first);
}
