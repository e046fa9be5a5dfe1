#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace dist::detail {

/// A list of values that are their bytes. Up to `few` of them lie in the list itself, so that a short one asks for no memory.
template <class T, std::size_t few>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>, "a ShortList copies its values as bytes");

 public:
  using value_type = T;

  ShortList() = default;
  ShortList(std::initializer_list<T> values) { append(values.begin(), values.size()); }

  [[nodiscard]] std::size_t size() const noexcept { return more_.empty() ? size_ : more_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const T* data() const noexcept { return more_.empty() ? few_ : more_.data(); }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size(); }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data()[i]; }

  void push_back(T value) { append(&value, 1); }
  /// The values are none of this list.
  void append(const T* values, std::size_t count) {
    if (more_.empty()) {
      if (count <= few - size_) {
        if (count > 0) std::memcpy(static_cast<void*>(few_ + size_), values, count * sizeof(T));
        size_ += count;
        return;
      }
      more_.reserve(count + 2 * few);
      more_.insert(more_.end(), few_, few_ + size_);
    }
    more_.insert(more_.end(), values, values + count);
  }
  /// All values, which the list has no longer.
  [[nodiscard]] std::vector<T> take() {
    std::vector<T> all = more_.empty() ? std::vector<T>(few_, few_ + size_) : std::exchange(more_, {});
    size_ = 0;
    return all;
  }

 private:
  T few_[few]{};
  std::size_t size_ = 0;  ///< of those in `few_`, where `more_` is empty
  std::vector<T> more_;   ///< all values, where they are more
};

}  // namespace dist::detail
