#pragma once

#include <type_traits>

namespace dist {

/// The context of a step that is traced, to be compiled (`strategy.compile`): its calls are written down and not done, its
/// values known only when the program runs. Where a call works for it as well as for a replica context, the same step is
/// run under one strategy and compiled under another.
template <class C>
concept InTrace = requires {
  requires std::remove_cvref_t<C>::is_tracing;
};

}  // namespace dist
