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
  /// The values do not lie in this list.
  void append(const T* values, std::size_t count) {
    if (count == 0) return;
    const std::size_t before = size();
    if (more_.empty() && count <= few - before) {
      copy(values, count, few_ + before);
      size_ += count;
      return;
    }
    if (more_.empty()) {
      more_.reserve(count + 2 * few);
      more_.resize(before);
      copy(few_, before, more_.data());
    }
    more_.resize(before + count);
    copy(values, count, more_.data() + before);
  }
  /// All values, which the list has no longer.
  [[nodiscard]] std::vector<T> take() {
    std::vector<T> all = std::exchange(more_, {});
    if (all.empty() && size_ > 0) {
      all.resize(size_);
      copy(few_, size_, all.data());
    }
    size_ = 0;
    return all;
  }

 private:
  static void copy(const T* from, std::size_t count, T* to) {
    std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
  }

  T few_[few]{};
  std::size_t size_ = 0;  ///< of those in `few_`, where `more_` is empty
  std::vector<T> more_;   ///< all values, where they are more
};

}  // namespace dist::detail
