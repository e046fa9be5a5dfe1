// expect: this metric cannot be used in XLA programs: make its of_row or for_each_bin a template of the row types, specialise nn::MetricLowering for it, or update it in a replica function that is not compiled
#include <cstdint>
#include <string_view>

#include <dist/nn/hlo/traced_metric.hpp>

struct Largest {
  using Tally = dist::nn::Tally<double, double>;
  std::string_view name = "largest";
  Tally operator()(double value) const { return {value, 1}; }
};
struct Tracing {
  static constexpr bool is_tracing = true;
  [[nodiscard]] dist::hlo::Traced<std::int32_t> rows() const { return 2; }
};
using X = dist::hlo::Traced<float>;
#ifdef CONTROL
using Measure = dist::nn::MeanValue;
#else
using Measure = Largest;
#endif

auto tally(X x) { return dist::nn::traced_tally(dist::nn::MetricInTrace{}, Measure{}, Tracing{}, x); }
