// expect: a layer with uses_global_rows needs uses_replica = true
#include <string_view>

#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct RowNumber {
  template <class In>
  struct On {
    using Output = In;
    static constexpr std::string_view name = "row_number";
    static constexpr auto& parameters = nn::detail::no_parameters;
    static constexpr bool is_view = false;
    static constexpr bool uses_global_rows = true;
#ifdef CONTROL
    static constexpr bool uses_replica = true;
#endif
  };
};

int main() { return nn::Sequential<nn::Input<2>, RowNumber>::uses_replica ? 0 : 1; }
