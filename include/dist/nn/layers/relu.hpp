#pragma once

#include <string_view>

#include <dist/nn/activation.hpp>
#include <dist/nn/layers/activate.hpp>

namespace dist::nn {

/// nn::Relu as a layer of its own, where the layer before takes no activation.
struct ReLU {
  template <class In>
  struct On : Activate<Relu>::On<In> {
    static constexpr std::string_view name = "re_lu";
  };
};

}  // namespace dist::nn
