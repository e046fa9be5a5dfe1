// expect: a layer's On<In> lacks one of its members Output, name, parameters and is_view
#include <string_view>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Same {
  template <class In>
  struct On {
    using Layer = Same;
    using Output = In;
    static constexpr std::string_view name = "same";
    static constexpr auto& parameters = nn::detail::no_parameters;
#ifdef CONTROL
    static constexpr bool is_view = true;
#endif
  };
};

using Net = nn::Sequential<nn::Input<4>, Same, nn::Dense<3>>;

int main() { return Net::parameter_count == 15 && Net::OutputShape::elements == 3 ? 0 : 1; }
