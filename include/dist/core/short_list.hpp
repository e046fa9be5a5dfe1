#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace dist::detail {

/// A list of trivially copyable values. Up to `few` values are stored inline, without heap memory.
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
  /// `values` must not point into this list.
  void append(const T* values, std::size_t count) {
    if (count == 0) return;
    if (!more_.empty() || count > few - size_) return append_more(values, count);
    copy(values, count, few_ + size_);
    size_ += count;
  }
  /// Returns all values and empties the list.
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
  /// Appends if the list does not fit into `few_`.
  [[gnu::noinline]] void append_more(const T* values, std::size_t count) {
    const std::size_t before = size();
    if (more_.empty()) {
      more_.reserve(count + 2 * few);
      more_.assign(few_, few_ + before);
    }
    more_.insert(more_.end(), values, values + count);
  }
  static void copy(const T* from, std::size_t count, T* to) {
    std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
  }

  T few_[few]{};
  std::size_t size_ = 0;  ///< of `few_`, if `more_` is empty
  std::vector<T> more_;   ///< all values, if `few_` is too small
};

}  // namespace dist::detail
