#pragma once

#include <cstddef>

#include <dist/nn/geometry.hpp>

namespace dist::nn::kernels {

/// Attention in blocks of queries and keys, without the matrix of all weights: softmaxes are computed while blocks of
/// keys pass, and again for the gradient (Dao, "FlashAttention-2", 2023). Factors are packed, head by head. Blocks that
/// causal attention does not reach are skipped.
///
/// All numbers must be finite: a NaN also affects queries of its block that do not attend to it.

/// Returns the floats of `scratch` that the functions below need.
[[nodiscard]] std::size_t attention_scratch(const AttentionSizes& sizes);

/// Computes a sequence's outputs [length, heads * width], and for the gradient `log_sums` [heads, length], the
/// logarithm of the sum of each query's exponentials.
void attention(const AttentionSizes& sizes, const AttentionInputs<float>& inputs, float* outputs, float* log_sums,
               float* scratch);

/// Overwrites the gradients of a sequence's queries, keys and values.
void attention_gradients(const AttentionSizes& sizes, const AttentionInputs<float>& inputs, const float* outputs,
                         const float* log_sums, const AttentionGradients<float>& gradients, float* scratch);

}  // namespace dist::nn::kernels

#ifndef DIST_COMPILED
#include <dist/nn/kernels/attention.ipp>
#endif
