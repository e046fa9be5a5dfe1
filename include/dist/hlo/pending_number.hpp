#pragma once

#include <memory>
#include <utility>

#include <dist/device/pjrt/buffer.hpp>

namespace dist::hlo {

/// A number that a program computes, for which only those wait who ask for it: a Future, whose copies mean the same number.
template <class T>
class PendingNumber {
 public:
  /// The type of what `strategy.reduce` gives for such numbers.
  using Reduced = T;

  /// Takes over a buffer of one element, without axes.
  explicit PendingNumber(pjrt::Buffer buffer) : buffer_(std::make_shared<const pjrt::Buffer>(std::move(buffer))) {}

  /// Returns when the number is there. Throws what went wrong in its program, and DeadlineExceeded.
  void wait() const { buffer_->wait(); }
  [[nodiscard]] bool is_done() const { return buffer_->is_done(); }
  /// Waits.
  [[nodiscard]] T value() const { return buffer_->download<T>()[0]; }
  operator T() const { return value(); }

 private:
  std::shared_ptr<const pjrt::Buffer> buffer_;
};

}  // namespace dist::hlo
