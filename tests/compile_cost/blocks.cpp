// Training steps of a network of BLOCKS blocks of attention and a feed-forward part, one by one or, with REPEAT, as
// nn::Repeat.
#include <cstddef>
#include <type_traits>
#include <utility>

#include <dist/dist.hpp>
#include <dist/nn.hpp>

#ifndef BLOCKS
#define BLOCKS 2
#endif

namespace nn = dist::nn;

namespace {

template <class Body>
using WithNorm = nn::Residual<nn::Sequential<nn::LayerNormalization<>, Body>>;
using Block = nn::Sequential<WithNorm<nn::MultiHeadAttention<6, 64, nn::AttendToPast>>,
                             WithNorm<nn::Sequential<nn::Dense<1536, nn::Gelu>, nn::Dense<384>>>>;

template <class>
struct OneByOne;
template <std::size_t... Number>
struct OneByOne<std::index_sequence<Number...>> {
  template <std::size_t>
  using Each = Block;
  using Type = nn::Sequential<Each<Number>...>;
};
#ifdef REPEAT
using Blocks = nn::Repeat<BLOCKS, Block>;
#else
using Blocks = OneByOne<std::make_index_sequence<BLOCKS>>::Type;
#endif
using Net = nn::Sequential<nn::Input<256>, nn::Embedding<128, 384>, nn::LearnedPositions<>, Blocks,
                           nn::LayerNormalization<>, nn::Dense<128>>;

}  // namespace

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net> net{strategy, 1};
  nn::Optimizer optimizer{strategy, net, nn::AdamW{}};
  const dist::Tensor<float> x{dist::Shape{4, 256}};
  const dist::Tensor<std::int32_t> y{dist::Shape{4, 256}};
  strategy.run([&](auto& replica) {
    const auto logits = net.forward(replica, x.view());
    net.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, y.view(), 8 * 256));
    optimizer.apply_gradients(replica);
  });
}
