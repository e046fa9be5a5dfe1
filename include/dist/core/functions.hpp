#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <dist/core/light_memory.hpp>

namespace dist::detail {

/// A non-owning reference to a function, which must outlive it. Avoids one template instance per lambda; calls are not
/// inlined.
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

/// An owning function object for later calls. Converts to false if empty. Copies share the function. Faster to compile
/// than std::function.
template <class Result, class... Arguments>
class UniqueFunction {
 public:
  UniqueFunction() = default;
  template <std::invocable<Arguments...> Fn>
    requires(!std::same_as<std::remove_cvref_t<Fn>, UniqueFunction>)
  UniqueFunction(Fn&& fn)
      : kept_(std::make_shared<std::decay_t<Fn>>(std::forward<Fn>(fn))),
        call_([](void* kept, Arguments... arguments) -> Result {
          return (*static_cast<std::decay_t<Fn>*>(kept))(std::forward<Arguments>(arguments)...);
        }) {}

  [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
  /// Must not be empty.
  Result operator()(Arguments... arguments) const { return call_(kept_.get(), std::forward<Arguments>(arguments)...); }

 private:
  std::shared_ptr<void> kept_;
  Result (*call_)(void*, Arguments...) = nullptr;
};

}  // namespace dist::detail
