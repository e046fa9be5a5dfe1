// expect: nn::Lowering is not defined for this layer: include its header in <dist/nn/hlo/>, or specialise nn::Lowering for your own layer
#include <tuple>

#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/sequential.hpp>

using Net = dist::nn::Sequential<dist::nn::Input<4>
#ifndef CONTROL
                                 ,
                                 dist::nn::ReLU
#endif
                                 >;
using X = dist::hlo::Traced<float, 2, 4>;

X output(const dist::nn::TraceArguments<dist::nn::Inference>& pass, X x) {
  std::tuple<> none;
  return dist::nn::emit_forward<Net>(pass, none, none, x);
}
