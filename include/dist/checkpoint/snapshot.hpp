#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/pointers.hpp>
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
  /// A number of the program's, of which the first process's counts.
  template <class T>
  void put_number(std::string_view key, T number) {
    if (rank_ != 0) return;
    Tensor<T> one{Shape{}};
    one[0] = number;
    keep(key, std::move(one));
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t processes() const noexcept { return loads_.size(); }
  /// Those that this process writes.
  [[nodiscard]] const std::vector<SavedTensor>& mine() const noexcept { return mine_; }

 private:
  template <class T>
  void keep(std::string_view key, Tensor<T> values) {
    auto owner = std::make_shared<const Tensor<T>>(std::move(values));
    const auto bytes = std::as_bytes(std::span<const T>{owner->data(), owner->size()});
    mine_.push_back({std::string{key}, io::element_type<T>, owner->shape(), std::move(owner), bytes});
  }

  std::size_t rank_;
  std::vector<std::uint64_t> loads_;  // of each process, in bytes
  std::vector<SavedTensor> mine_;
};

}  // namespace dist::detail
