// expect: a slice consists of integers, Range, ellipsis and new_axis
// (spec K09)
#include <dist/core/slicing.hpp>

int main() {
  const dist::Tensor<float> tensor{{3}, {1, 2, 3}};
#ifdef CONTROL
  static_cast<void>(dist::sliced(tensor.view(), dist::Range{1, 3}));
#else
  static_cast<void>(dist::sliced(tensor.view(), dist::Tensor<int>{{2}, {1, 2}}));
#endif
}
