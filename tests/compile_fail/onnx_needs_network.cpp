// expect: nn::export_onnx takes a strategy and an nn::Network made on it
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/onnx/export_onnx.hpp>
#include <dist/strategy/default.hpp>

using Net = dist::nn::Sequential<dist::nn::Input<2>, dist::nn::Dense<1>>;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  dist::nn::Network<Net> network{strategy};
#else
  Net network;
#endif
  dist::nn::export_onnx(strategy, network, "model.onnx");
}
