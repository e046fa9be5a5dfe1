#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace dist::detail {

/// A function that its caller keeps as long as it is called. One piece of code takes it where a template parameter would
/// make one for every lambda; a call through it cannot be inlined.
template <class Signature>
class FunctionRef;
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <std::invocable<Arguments...> Fn>
    requires(!std::same_as<std::remove_cvref_t<Fn>, FunctionRef>)
  FunctionRef(Fn&& function)
  noexcept
      : function_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* kept, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Fn>*>(kept))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  void* function_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace dist::detail
