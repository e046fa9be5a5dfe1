// expect: nn::Unembed multiplies rows of the last axis by the vectors of a table, whose width differs
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
constexpr std::size_t units = 3;
#else
constexpr std::size_t units = 5;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Named<"wte", nn::Embedding<9, 3>>, nn::Dense<units>, nn::Unembed<"wte">>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
