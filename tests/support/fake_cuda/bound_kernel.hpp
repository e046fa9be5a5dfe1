#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace fake_cuda {

/// A host function with the arguments of a launch, stored as the bytes of a closure to keep the code per kernel small.
class BoundKernel {
 public:
  template <class... Expected>
  [[nodiscard]] static BoundKernel of(void (*kernel)(Expected...), const std::decay_t<Expected>&... arguments) {
    const auto call = [=] { kernel(arguments...); };
    using Call = decltype(call);
    static_assert(alignof(Call) <= alignof(Line));
    BoundKernel bound{&call, sizeof call, [](const void* bytes) { (*static_cast<Call*>(bytes))(); }};
    (bound.append(arguments), ...);
    return bound;
  }
  void operator()() const { run_(call_.data()); }

  /// The words that may contain addresses. Excludes padding, which is unspecified, and arguments with padding if the
  /// compiler cannot clear it.
  [[nodiscard]] const std::vector<std::uintptr_t>& words() const { return words_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  BoundKernel(const void* call, std::size_t bytes, void (*run)(const void*))
      : run_(run), call_((bytes + sizeof(Line) - 1) / sizeof(Line)) {
    std::memcpy(call_.data(), call, bytes);
  }

  template <class T>
  void append(T argument) {
#if defined(__clang__)
    constexpr bool is_seen = std::has_unique_object_representations_v<T>;
#else
    constexpr bool is_seen = true;
    __builtin_clear_padding(&argument);
#endif
    append_bytes(is_seen ? &argument : nullptr, sizeof argument);
  }
  /// Appends zeros for excluded bytes.
  void append_bytes(const void* bytes, std::size_t count) {
    const std::size_t before = words_.size();
    words_.resize(before + (count + sizeof(std::uintptr_t) - 1) / sizeof(std::uintptr_t));
    if (bytes != nullptr) std::memcpy(&words_[before], bytes, count);
  }

  void (*run_)(const void*);
  std::vector<Line> call_;
  std::vector<std::uintptr_t> words_;
};

}  // namespace fake_cuda
