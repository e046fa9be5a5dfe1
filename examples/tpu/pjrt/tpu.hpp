#pragma once

#include <dist/nn/xla.hpp>
#include <dist/tpu.hpp>

/// Calls `use.operator()<Layers>(strategy)` with one replica on each device of the PJRT plugin, whose header was found
/// at configure time.
void with_tpu(const auto& use) {
  dist::Tpu<> strategy;
  use.template operator()<dist::nn::Xla>(strategy);
}
