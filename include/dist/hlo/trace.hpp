#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist::hlo {

/// A value of a program that is traced: the number of the operation that computes it, and which program that is.
struct Value {
  /// Instead of the number of a result: the operation has one.
  static constexpr std::size_t only = static_cast<std::size_t>(-1);

  std::uint64_t trace;
  std::size_t number;
  std::size_t result = only;
};

/// The program that this thread writes down: the text of its operations, in StableHLO, one line for each. While it lives,
/// operations on traced values add to it; where traces are nested, to the innermost.
class Trace {
 public:
  /// For so many replicas. Throws InvalidArgument for none.
  explicit Trace(std::size_t replicas) : replicas_(replicas), id_(next_id()), outer_(current_) {
    if (replicas == 0)
      throw InvalidArgument("A program cannot be traced", "it is for no replica", "Ask for one replica or more");
    current_ = this;
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { current_ = outer_; }

  /// The innermost one of this thread. Throws InvalidArgument where there is none.
  [[nodiscard]] static Trace& current() {
    if (current_ == nullptr)
      throw InvalidArgument("A traced value was made or used outside of a program",
                            "this thread traces none at the moment",
                            "Make constants and compute in the function that is given to hlo::trace");
    return *current_;
  }

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// A value that no operation computes: an argument of the program, or of the body of a loop.
  [[nodiscard]] Value argument() noexcept { return {id_, numbers_++}; }
  /// The result of one more operation, such as "stablehlo.add %0, %1 : tensor<f32>".
  [[nodiscard]] Value add(std::string_view operation) {
    const Value result = argument();
    text_ += dist::text(name(result), " = ", operation, "\n");
    return result;
  }
  /// The operations of a region, which `body()` adds, and which are taken out of the program again.
  template <class Body>
  [[nodiscard]] std::string region(Body&& body) {
    std::string before = std::exchange(text_, {});
    std::forward<Body>(body)();
    return std::exchange(text_, std::move(before));
  }
  /// Adds a line that computes nothing by itself.
  void add_line(std::string_view line) { text_ += dist::text(line, "\n"); }

  /// How an operation names a value: "%3". Throws InvalidArgument for a value of another program.
  [[nodiscard]] std::string name(Value value) const {
    if (value.trace != id_)
      throw InvalidArgument("A traced value belongs to another program",
                            "it was computed while another function was traced",
                            "Give it to this program as an argument, or compute it there");
    return value.result == Value::only ? dist::text("%", value.number)
                                       : dist::text("%", value.number, "#", value.result);
  }

 private:
  [[nodiscard]] static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  inline static thread_local Trace* current_ = nullptr;

  std::size_t replicas_;
  std::uint64_t id_;
  Trace* outer_;
  std::size_t numbers_ = 0;
  std::string text_;
};

}  // namespace dist::hlo
