// The training step of a GPT of 10.8 million parameters on tokens in memory, compared with the multiply-add limit of the
// machine: 6 blocks of 384 channels and 6 heads, sequences of 256 tokens, AdamW.
//
//   bench_gpt_step [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_gpt_step --only NAME [SECONDS]  one contender alone, for profilers and comparisons
#include <cstddef>
#include <cstdint>
#include <memory>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/machine.hpp"
#include "support/named_contenders.hpp"
#include "support/training.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
constexpr std::size_t context = 256, channels = 384, heads = 6, words = 65, batch = 8;

template <class Body>
using WithNorm = nn::Residual<nn::Sequential<nn::LayerNormalization<>, Body>>;
using Block = nn::Sequential<WithNorm<nn::MultiHeadAttention<heads, channels / heads, nn::AttendToPast>>,
                             WithNorm<nn::Sequential<nn::Dense<4 * channels, nn::GeluTanh>, nn::Dense<channels>>>>;
using Gpt = nn::Sequential<nn::Input<context>, nn::Named<"wte", nn::Embedding<words, channels>>, nn::LearnedPositions<>,
                           Block, Block, Block, Block, Block, Block, nn::LayerNormalization<>, nn::Unembed<"wte">>;
static_assert(Gpt::parameter_count == 10'770'816, "the network in peers/ has the same number");

/// Multiplications and additions of a step for a token: 2 in forward and 4 in backward for each element of a kernel, and
/// attention to half of the context.
constexpr double flop_per_token =
    6.0 * (6 * 12 * channels * channels + words * channels) + 6 * 3.5 * 4 * channels * (context + 1) / 2.0;

/// Reproducible random tokens and labels.
struct Tokens {
  Tokens() {
    const dist::RandomStream random{3};
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(random.below(words, 2 * i));
      y[i] = static_cast<std::int32_t>(random.below(words, 2 * i + 1));
    }
  }
  dist::Tensor<float> x{dist::Shape{batch, context}};
  dist::Tensor<std::int32_t> y{dist::Shape{batch, context}};
};

template <class Strategy, class Backend>
struct Run {
  template <class... Replicas>
  explicit Run(Replicas... replicas) : strategy(replicas...) {}

  Strategy strategy;
  Tokens tokens;
  bench::NetworkTraining<Gpt, nn::AdamW, Backend, Strategy> training{strategy};
};

/// Runs one global step. Returns the number of tokens.
template <class Strategy, class Backend = nn::OneDnn, class... Replicas>
bench::Work make(Replicas... replicas) {
  const auto run = std::make_shared<Run<Strategy, Backend>>(replicas...);
  return [run] {
    run->training(run->tokens);
    return static_cast<double>(run->tokens.x.size());
  };
}

using One = dist::OneDevice<dist::Cpu>;
const bench::NamedContender contenders[] = {
    {"limit", "multiply-add limit of one core",
     [] {
       return [] {
         constexpr double slice = 0.02;
         return bench::fma_rate(slice) * slice / flop_per_token;
       };
     }},
    {"one", "OneDevice<Cpu>, 1 x 8", [] { return make<One>(); }},
    {"bfloat16", "OneDevice<Cpu>, 1 x 8, BFloat16",
     [] { return make<One, nn::MixedPrecision<nn::OneDnn, dist::BFloat16>>(); }},
    {"mirrored", "Mirrored<ThreadAllReduce>, 2 x 4",
     [] { return make<dist::Mirrored<dist::ThreadAllReduce>>(std::size_t{2}); }},
};

constexpr bench::Quotient quotients[] = {
    {"1 replica over the multiply-add limit (0.75)", "one", "limit", true},
    {"BFloat16 over float (1.4)", "bfloat16", "one"},
    {"2 replicas over 1 replica (1.8)", "mirrored", "one"},
};

}  // namespace

int main(int argc, char** argv) {
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "GPT training step, AdamW, (goal)",
       .help = "Times the training step of a GPT, for all contenders in turns or for one.",
       .unit = "tokens",
       .seconds = 2});
}
