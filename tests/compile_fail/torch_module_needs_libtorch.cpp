// expect: <torch/nn/module.h> of libtorch was not found: install libtorch-dev, and link dist::torch
// flags: -nostdinc
#include <dist/torch/module.hpp>

int main() {}
