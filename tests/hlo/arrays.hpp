/// Array types for tests of programs.
#pragma once

#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/hlo/traced.hpp>

namespace testing {

template <std::size_t... Extents>
using Floats = dist::hlo::Traced<float, Extents...>;
using Numbers = dist::Tensor<float>;

}  // namespace testing
