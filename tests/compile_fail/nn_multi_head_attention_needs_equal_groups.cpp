// expect: nn::MultiHeadAttention needs a multiple of its key_heads as heads
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Grouped : nn::AttendToPast {
#ifdef CONTROL
  static constexpr std::size_t key_heads = 2;
#else
  static constexpr std::size_t key_heads = 3;
#endif
};

using Net = nn::Sequential<nn::Input<5, 6>, nn::MultiHeadAttention<4, 2, Grouped>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
