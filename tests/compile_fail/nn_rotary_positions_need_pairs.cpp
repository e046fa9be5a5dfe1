// expect: nn::RotaryPositions rotate pairs of columns: give nn::MultiHeadAttention heads of an even width
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Rotary : nn::AttendToPast {
  using Positions = nn::RotaryPositions<>;
};

#ifdef CONTROL
inline constexpr std::size_t width = 4;
#else
inline constexpr std::size_t width = 3;
#endif

using Net = nn::Sequential<nn::Input<5, 6>, nn::MultiHeadAttention<2, width, Rotary>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
