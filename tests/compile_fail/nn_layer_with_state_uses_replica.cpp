// expect: a layer with state needs uses_replica = true
#include <array>
#include <string_view>

#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Counter {
  template <class In>
  struct On {
    using Output = In;
    static constexpr std::string_view name = "counter";
    static constexpr auto& parameters = nn::detail::no_parameters;
    static constexpr std::array state{nn::StateSpec{"count", dist::Shape{1}}};
    static constexpr bool is_view = false;
#ifdef CONTROL
    static constexpr bool uses_replica = true;
#endif
  };
};

int main() { return nn::Sequential<nn::Input<2>, Counter>::state_count == 1 ? 0 : 1; }
