// expect: needs the table of a layer named
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Last = nn::Unembed<"wte">;
#else
using Last = nn::Unembed<"table">;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Named<"wte", nn::Embedding<9, 3>>, Last>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
