#pragma once

#include <array>
#include <cstdint>

#include <dist/core/algorithms.hpp>

namespace dist::rpc {

/// The numbers of a client's calls that have come: calls overtake each other, but not by more than `width`.
class NonceFilter {
 public:
  static constexpr std::uint64_t width = 4096;

  /// Whether it is known if the number has come before.
  [[nodiscard]] bool remembers(std::uint64_t number) const { return number + width > highest_; }
  /// Whether the number has come before, as far as that is known.
  [[nodiscard]] bool has(std::uint64_t number) const {
    return remembers(number) && number <= highest_ && (seen_[number % width / 64] & bit(number)) != 0;
  }
  /// False where the number has come before, or is so old that nobody knows.
  [[nodiscard]] bool take(std::uint64_t number) {
    if (!remembers(number)) return false;
    if (number > highest_) {
      for (std::uint64_t passed = std::max(highest_ + 1, number < width ? 0 : number - width + 1); passed < number;
           ++passed)
        at(passed) &= ~bit(passed);
      highest_ = number;
    } else if ((at(number) & bit(number)) != 0) {
      return false;
    }
    at(number) |= bit(number);
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t& at(std::uint64_t number) { return seen_[number % width / 64]; }
  [[nodiscard]] static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << number % 64; }

  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, width / 64> seen_{};
};

}  // namespace dist::rpc
