// GPT-2 and BERT, and the names of their weights in the files that Hugging Face's transformers write.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/nn.hpp>

namespace pretrained {

namespace nn = dist::nn;

struct Sizes {
  std::size_t words, length, channels, heads, blocks;
};

// [gpt2]
struct Gpt2Epsilon : nn::LayerNormalizationOptions {
  static constexpr double epsilon = 1e-5;
};
/// Normalises the input of a residual part.
template <class Body>
using NormBefore = nn::Residual<nn::Sequential<nn::LayerNormalization<Gpt2Epsilon>, Body>>;
template <std::size_t Heads>
struct Gpt2Block {
  template <class In>
  using Layers = nn::Sequential<
      NormBefore<nn::MultiHeadAttention<Heads, In::last_extent / Heads, nn::AttendToPast>>,
      NormBefore<nn::Sequential<nn::Dense<4 * In::last_extent, nn::GeluTanh>, nn::Dense<In::last_extent>>>>;
};
template <Sizes Of>
using Gpt2 =
    nn::Sequential<nn::Input<Of.length>, nn::Named<"wte", nn::Embedding<Of.words, Of.channels>>,
                   nn::Named<"wpe", nn::LearnedPositions<>>, nn::Named<"h", nn::Repeat<Of.blocks, Gpt2Block<Of.heads>>>,
                   nn::Named<"ln_f", nn::LayerNormalization<Gpt2Epsilon>>, nn::Unembed<"wte">>;
// [/gpt2]

// [gpt2_names]
/// The names of a GPT2LMHeadModel; `model` is "transformer." or, in the files of OpenAI, "".
inline dist::LoadWeightsOptions gpt2_names(const Sizes& of, const std::string& model = "transformer.") {
  const std::size_t channels = of.channels, width = channels / of.heads;
  const std::string block = model + "h.{}.";
  const std::string attention = "h/{}/multi_head_attention/";
  std::vector<dist::WeightSource> names = {
      {"wte/embeddings", model + "wte.weight"},
      {.ours = "wpe/embeddings", .theirs = model + "wpe.weight", .rows = dist::IndexRange{0, of.length}},
      {"h/{}/layer_normalization/gamma", block + "ln_1.weight"},
      {"h/{}/layer_normalization/beta", block + "ln_1.bias"},
      {.ours = attention + "attention_output/kernel",
       .theirs = block + "attn.c_proj.weight",
       .seen_as = dist::Shape{of.heads, width, channels}},
      {attention + "attention_output/bias", block + "attn.c_proj.bias"},
      {"h/{}/layer_normalization_1/gamma", block + "ln_2.weight"},
      {"h/{}/layer_normalization_1/beta", block + "ln_2.bias"},
      {"h/{}/dense/kernel", block + "mlp.c_fc.weight"},
      {"h/{}/dense/bias", block + "mlp.c_fc.bias"},
      {"h/{}/dense_1/kernel", block + "mlp.c_proj.weight"},
      {"h/{}/dense_1/bias", block + "mlp.c_proj.bias"},
      {"ln_f/gamma", model + "ln_f.weight"},
      {"ln_f/beta", model + "ln_f.bias"},
  };
  // c_attn has the columns of the queries, then the keys, then the values.
  dist::IndexRange columns{0, channels};
  for (const std::string part : {"query", "key", "value"}) {
    names.push_back({.ours = attention + part + "/kernel",
                     .theirs = block + "attn.c_attn.weight",
                     .seen_as = dist::Shape{channels, of.heads, width},
                     .rows = columns,
                     .rows_axis = 1});
    names.push_back({.ours = attention + part + "/bias",
                     .theirs = block + "attn.c_attn.bias",
                     .seen_as = dist::Shape{of.heads, width},
                     .rows = columns});
    columns = {columns.end, columns.end + channels};
  }
  return {.names = std::move(names)};
}
// [/gpt2_names]

// [bert]
struct BertEpsilon : nn::LayerNormalizationOptions {
  static constexpr double epsilon = 1e-12;
};
/// Normalises the output of a residual part.
template <class Body>
using NormAfter = nn::Sequential<nn::Residual<Body>, nn::LayerNormalization<BertEpsilon>>;
template <std::size_t Heads>
struct BertBlock {
  template <class In>
  using Layers =
      nn::Sequential<NormAfter<nn::MultiHeadAttention<Heads, In::last_extent / Heads>>,
                     NormAfter<nn::Sequential<nn::Dense<4 * In::last_extent, nn::Gelu>, nn::Dense<In::last_extent>>>>;
};
/// Each text has one segment, whose vector is a bias. The head finds the words of masked positions.
template <Sizes Of>
using Bert = nn::Sequential<
    nn::Input<Of.length>, nn::Named<"words", nn::Embedding<Of.words, Of.channels>>,
    nn::Named<"positions", nn::LearnedPositions<>>, nn::Named<"segment", nn::Bias<>>,
    nn::Named<"norm", nn::LayerNormalization<BertEpsilon>>, nn::Named<"h", nn::Repeat<Of.blocks, BertBlock<Of.heads>>>,
    nn::Named<"head", nn::Sequential<nn::Dense<Of.channels, nn::Gelu>, nn::LayerNormalization<BertEpsilon>>>,
    nn::Unembed<"words">, nn::Named<"scores", nn::Bias<>>>;
// [/bert]

// [bert_names]
/// The names of a BertForMaskedLM. PyTorch's Linear stores [out, in].
inline dist::LoadWeightsOptions bert_names(const Sizes& of) {
  const std::size_t channels = of.channels, width = channels / of.heads;
  const std::string embeddings = "bert.embeddings.", block = "bert.encoder.layer.{}.", head = "cls.predictions.";
  const std::string attention = "h/{}/multi_head_attention/";
  std::vector<dist::WeightSource> names = {
      {"words/embeddings", embeddings + "word_embeddings.weight"},
      {.ours = "positions/embeddings",
       .theirs = embeddings + "position_embeddings.weight",
       .rows = dist::IndexRange{0, of.length}},
      {.ours = "segment/bias",
       .theirs = embeddings + "token_type_embeddings.weight",
       .seen_as = dist::Shape{channels},
       .rows = dist::IndexRange{0, 1}},
      {"norm/gamma", embeddings + "LayerNorm.weight"},
      {"norm/beta", embeddings + "LayerNorm.bias"},
      {.ours = attention + "attention_output/kernel",
       .theirs = block + "attention.output.dense.weight",
       .axes = {1, 2, 0},
       .seen_as = dist::Shape{channels, of.heads, width}},
      {attention + "attention_output/bias", block + "attention.output.dense.bias"},
      {"h/{}/layer_normalization/gamma", block + "attention.output.LayerNorm.weight"},
      {"h/{}/layer_normalization/beta", block + "attention.output.LayerNorm.bias"},
      {"h/{}/dense/kernel", block + "intermediate.dense.weight", {1, 0}},
      {"h/{}/dense/bias", block + "intermediate.dense.bias"},
      {"h/{}/dense_1/kernel", block + "output.dense.weight", {1, 0}},
      {"h/{}/dense_1/bias", block + "output.dense.bias"},
      {"h/{}/layer_normalization_1/gamma", block + "output.LayerNorm.weight"},
      {"h/{}/layer_normalization_1/beta", block + "output.LayerNorm.bias"},
      {"head/dense/kernel", head + "transform.dense.weight", {1, 0}},
      {"head/dense/bias", head + "transform.dense.bias"},
      {"head/layer_normalization/gamma", head + "transform.LayerNorm.weight"},
      {"head/layer_normalization/beta", head + "transform.LayerNorm.bias"},
      {"scores/bias", head + "bias"},
  };
  for (const std::string part : {"query", "key", "value"}) {
    const std::string theirs = block + "attention.self." + part;
    names.push_back({.ours = attention + part + "/kernel",
                     .theirs = theirs + ".weight",
                     .axes = {2, 0, 1},
                     .seen_as = dist::Shape{of.heads, width, channels}});
    names.push_back(
        {.ours = attention + part + "/bias", .theirs = theirs + ".bias", .seen_as = dist::Shape{of.heads, width}});
  }
  return {.names = std::move(names)};
}
// [/bert_names]

}  // namespace pretrained
