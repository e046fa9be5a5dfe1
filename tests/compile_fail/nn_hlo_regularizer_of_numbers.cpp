// expect: this regularizer cannot be used in XLA programs: make its term and slope templates of the number type, an nn::Real
#include <dist/nn/hlo/traced_regularizer.hpp>

struct Squares {
#ifdef CONTROL
  template <class T>
  T term(T weight) const {
    return weight * weight;
  }
  template <class T>
  T slope(T weight) const {
    return weight + weight;
  }
#else
  float term(float weight) const { return weight * weight; }
  float slope(float weight) const { return weight + weight; }
#endif
};
static_assert(dist::nn::Regularizer<Squares>);

static_assert(dist::nn::detail::require_regularizer_of_programs<Squares, dist::hlo::Dynamic<float>>());
