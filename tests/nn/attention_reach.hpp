#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <dist/nn/backend.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace dist_test {

/// Checks that elements outside the reach of a back end's causal attention have no effect, not even a NaN, and no
/// gradient.
template <class Backend>
void check_attention_reach(Bench<Backend>& bench, typename Backend::State& state) {
  namespace nn = dist::nn;
  using Geometry = nn::AttentionGeometry<2, 1, 1, nn::AttendToPast>;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  using Elements = typename Bench<Backend>::template Elements<float>;
  const Elements queries{bench, {1, 2}}, keys{bench, {3, nan}}, values{bench, {5, nan}}, outputs{bench, {0, 0}};
  const auto view = [](const Elements& of) { return nn::ViewOn<Backend, float>{of.span().data(), {2, 1}}; };
  typename Backend::template Attention<Geometry, float> attention;
  attention.forward(state, view(queries), view(keys), view(values), view(outputs));
  const auto found = support::on_host(bench.queue(), outputs.span());
  CHECK(found[0] == 5);
  CHECK(std::isnan(found[1]));

  // The first element attends only to itself, so only the second element's gradient reaches the second key and value.
  const Elements finite{bench, {3, 4}}, slopes{bench, {nan, 7}}, dq{bench, {0, 0}}, dk{bench, {0, 0}},
      dv{bench, {0, 0}};
  attention.forward(state, view(queries), view(finite), view(finite), view(outputs));
  attention.input_gradients(state, view(queries), view(finite), view(finite), view(outputs), view(slopes), view(dq),
                            view(dk), view(dv));
  for (const Elements* const of : {&dk, &dv}) {
    const auto gradient = support::on_host(bench.queue(), of->span());
    CHECK(std::isnan(gradient[0]));
    CHECK(std::isfinite(gradient[1]));
  }
}

}  // namespace dist_test
