#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/elements.hpp>

namespace dist::detail {

using io::detail::AnyTensor;

/// Formats a number with the precision that distinguishes all values.
[[nodiscard]] inline std::string exact_text(const AnyTensor& number) {
  return io::with_element_type(number.type, [&]<class T>() -> std::string {
    const T value = number.view<T>()[0];
    if constexpr (std::is_integral_v<T>) {
      return std::to_string(value);
    } else {
      char words[40];
      std::snprintf(words, sizeof words, "%.*g", std::numeric_limits<T>::max_digits10, static_cast<double>(value));
      return words;
    }
  });
}

/// A tensor at the time of the save.
struct SavedTensor : AnyTensor {
  std::string key;
};

/// A number of the program: its key, and its value as exact text.
struct SavedNumber {
  std::string key;
  std::string value;
};

/// The part of a save that one process writes. The processes balance the bytes by a common rule: the next tensor goes
/// to the process with the fewest bytes.
class Snapshot {
 public:
  Snapshot(std::size_t rank, std::size_t processes) : rank_(rank), loads_(processes) {}

  /// A snapshot that the first process writes alone; `is_first` is true in that process.
  [[nodiscard]] static Snapshot of_first(bool is_first) {
    return Snapshot{is_first ? std::size_t{0} : std::size_t{1}, 1};
  }

  /// Adds the next tensor, which all processes have.
  void put(std::string_view key, AnyTensor values) {
    const auto least = std::min_element(loads_.begin(), loads_.end());
    *least += values.bytes.size();
    if (static_cast<std::size_t>(least - loads_.begin()) == rank_)
      local_tensors_.push_back({std::move(values), std::string{key}});
  }
  template <class T>
  void put(std::string_view key, Tensor<T> values) {
    put(key, AnyTensor::of(std::move(values)));
  }
  /// Adds a number of the program, which is equal in all processes (require_equal_numbers). The first process writes
  /// it.
  void put_number(std::string_view key, AnyTensor number) {
    numbers_.push_back({std::string{key}, exact_text(number)});
    if (rank_ == 0) local_tensors_.push_back({std::move(number), std::string{key}});
  }
  template <class T>
  void put_number(std::string_view key, T number) {
    Tensor<T> one{Shape{}};
    one[0] = number;
    put_number(key, AnyTensor::of(std::move(one)));
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t processes() const noexcept { return loads_.size(); }
  [[nodiscard]] const std::vector<SavedTensor>& local_tensors() const noexcept { return local_tensors_; }
  [[nodiscard]] const std::vector<SavedNumber>& numbers() const noexcept { return numbers_; }

 private:
  std::size_t rank_;
  std::vector<std::uint64_t> loads_;  // bytes per process
  std::vector<SavedTensor> local_tensors_;
  std::vector<SavedNumber> numbers_;
};

}  // namespace dist::detail
