// expect: the back end of this network does not support the layer named here
#include <dist/nn/chain.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

/// A back end with some layers.
struct Products {
  static constexpr std::string_view name = "products";
  using Device = dist::Cpu;
  using State = nn::Reference::State;
  template <class T>
  static constexpr bool supports = true;
  template <class Geometry, class T>
  using Dense = nn::reference::Dense<Geometry, T>;
  template <class Function, class T>
  using Elementwise = nn::reference::Elementwise<Function, T>;
};

#ifdef CONTROL
using Backend = nn::Reference;
#else
using Backend = Products;
#endif

using Net = nn::Sequential<nn::Input<4, 4, 1>, nn::AveragePool2D<2>, nn::Flatten, nn::Dense<2>>;

int main() { return sizeof(nn::Workspace<Net, Backend, float>) > 0 ? 0 : 1; }
