#pragma once

#include <type_traits>

namespace dist {

/// True for the context of a step that is traced for compilation (`strategy.compile`): calls are recorded, and values
/// exist only when the program runs. With calls that accept both this and a replica context, one step can run under one
/// strategy, and compile under another.
template <class C>
concept InTrace = requires {
  requires std::remove_cvref_t<C>::is_tracing;
};

}  // namespace dist
