#include <dist/nn/hlo/backend.hpp>

#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/image_layers.hpp>

#include "conformance/not_finite.hpp"
#include "nn/hlo/check_lowering.hpp"

namespace {

/// Training passes of a network in an XLA program.
template <class Net>
class Program {
 public:
  dist_test::Pass operator()(const conformance::not_finite::Given& given) {
    const dist_test::PassResult pass = program_({{.parameters = dist_test::packed(Net::parameters, given.parameters),
                                                  .state = {},
                                                  .x = given.batch,
                                                  .targets = given.targets}})[0][0];
    return {.loss = 0, .outputs = pass.outputs, .gradients = pass.gradients};
  }

 private:
  dist_test::LoweredProgram<Net, false, dist::nn::Reference> program_{1, conformance::not_finite::rows};
};

}  // namespace

TEST_CASE("networks in XLA programs propagate non-finite numbers like plain loops") {
  using namespace conformance::not_finite;
  // Only some of the networks, because XLA compiles a program for each. Excludes Gelu: for -infinity it is NaN in plain
  // loops, but infinite in XLA programs.
  [&]<class... Net>(std::type_identity<std::tuple<Net...>>) {
    (check<Net>(Program<Net>{}), ...);
  }(std::type_identity<std::tuple<Dense<nn::Relu>, Dense<nn::Tanh>, Dense<nn::Sigmoid>, Convolutions<nn::Relu>,
                                  Pooled<nn::MaxPool2D<3, 1>, nn::GlobalMaxPool2D>>>{});
}
