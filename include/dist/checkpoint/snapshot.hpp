#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>

namespace dist::detail {

/// A tensor as it was when it was saved, in memory of its own.
struct SavedTensor {
  std::string key;
  io::ElementType type = io::ElementType::f32;
  Shape shape;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// A number of the program by its key, and its value as a text that tells values apart.
struct SavedNumber {
  std::string key;
  std::string value;
};
template <class T>
[[nodiscard]] std::string exact_text(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    char words[40];
    std::snprintf(words, sizeof words, "%.*g", std::numeric_limits<T>::max_digits10, static_cast<double>(number));
    return words;
  } else {
    return std::to_string(number);
  }
}

/// What one of several processes writes of all that is saved. They share tensors out so that each writes about as many bytes,
/// by a rule that all of them follow: the next tensor goes to the process that has the fewest bytes.
class Snapshot {
 public:
  Snapshot(std::size_t rank, std::size_t processes) : rank_(rank), loads_(processes) {}

  /// One that the first process writes whole; `is_first` says whether this is the one.
  [[nodiscard]] static Snapshot of_first(bool is_first) {
    return Snapshot{is_first ? std::size_t{0} : std::size_t{1}, 1};
  }

  /// The next tensor, which all processes have.
  template <class T>
  void put(std::string_view key, Tensor<T> values) {
    const auto least = std::min_element(loads_.begin(), loads_.end());
    *least += values.size() * sizeof(T);
    if (static_cast<std::size_t>(least - loads_.begin()) == rank_) keep(key, std::move(values));
  }
  /// A number of the program, which is the same in all processes (require_equal_numbers). The first process writes it.
  template <class T>
  void put_number(std::string_view key, T number) {
    numbers_.push_back({std::string{key}, exact_text(number)});
    if (rank_ != 0) return;
    Tensor<T> one{Shape{}};
    one[0] = number;
    keep(key, std::move(one));
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t processes() const noexcept { return loads_.size(); }
  /// Those that this process writes.
  [[nodiscard]] const std::vector<SavedTensor>& local_tensors() const noexcept { return local_tensors_; }
  /// The numbers of this process, in the order in which they were put.
  [[nodiscard]] const std::vector<SavedNumber>& numbers() const noexcept { return numbers_; }

 private:
  template <class T>
  void keep(std::string_view key, Tensor<T> values) {
    auto owner = std::make_shared<const Tensor<T>>(std::move(values));
    const auto bytes = std::as_bytes(std::span<const T>{owner->data(), owner->size()});
    local_tensors_.push_back({std::string{key}, io::element_type<T>, owner->shape(), std::move(owner), bytes});
  }

  std::size_t rank_;
  std::vector<std::uint64_t> loads_;  // of each process, in bytes
  std::vector<SavedTensor> local_tensors_;
  std::vector<SavedNumber> numbers_;
};

}  // namespace dist::detail
