#pragma once

namespace dist::data {

/// One example, or one batch of them: features `x` and what is to be predicted from them, `y`.
template <class X, class Y>
struct Example {
  X x;
  Y y;
};
template <class X, class Y>
Example(X, Y) -> Example<X, Y>;

}  // namespace dist::data
