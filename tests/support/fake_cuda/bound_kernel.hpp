#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.hpp"

namespace fake_cuda {

/// A function of the host with the arguments of a launch.
template <class... Expected>
class BoundKernel : public KernelCall {
 public:
  template <class... Given>
  explicit BoundKernel(void (*kernel)(Expected...), Given&&... given)
      : kernel_(kernel), arguments_{std::forward<Given>(given)...} {}
  void operator()() const override { std::apply(kernel_, arguments_); }

  /// The words in which addresses may stand. Padding is none of them, which may hold anything; nor is an argument with
  /// padding, of a compiler that cannot clear it.
  [[nodiscard]] std::vector<std::uintptr_t> words() const {
    std::vector<std::uintptr_t> words;
    std::apply([&](const auto&... argument) { (append(words, argument), ...); }, arguments_);
    return words;
  }

 private:
  template <class T>
  static void append(std::vector<std::uintptr_t>& words, T argument) {
#if defined(__clang__)
    constexpr bool is_seen = std::has_unique_object_representations_v<T>;
#else
    constexpr bool is_seen = true;
    __builtin_clear_padding(&argument);
#endif
    const std::size_t count = (sizeof argument + sizeof(std::uintptr_t) - 1) / sizeof(std::uintptr_t);
    words.resize(words.size() + count);
    if constexpr (is_seen) std::memcpy(&words[words.size() - count], &argument, sizeof argument);
  }

  void (*kernel_)(Expected...);
  std::tuple<std::decay_t<Expected>...> arguments_;
};

}  // namespace fake_cuda
