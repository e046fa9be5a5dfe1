#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/trace.hpp>
#include <dist/hlo/type.hpp>

namespace dist::hlo {

using ::dist::here;

/// A value of a program that is traced, by its number, and which program that is.
struct Value {
  std::uint64_t trace;
  std::size_t number;

  friend bool operator==(Value, Value) = default;
};

/// The gradient of an operand, from the result of its operation and the gradient of this result.
using Pullback = std::function<Value(Value result, Value gradient)>;

/// Operations that another one runs, such as the body of a loop.
struct Region {
  std::vector<Value> arguments;
  /// By their numbers in the trace.
  std::vector<std::size_t> operations;
  std::vector<Value> results;
};

/// Where an operation comes from: "program/layer 2 (dense)", "cnn.cpp:40".
struct Location {
  std::string scope;
  std::string place;

  friend bool operator==(const Location&, const Location&) = default;
};
/// "program/layer 2 (dense) at cnn.cpp:40".
[[nodiscard]] std::string to_string(const Location& location);

/// An operation of StableHLO, or of CHLO, as it is recorded.
struct Operation {
  /// Without the dialect: "add"; that of another dialect with it: "chlo.erf".
  std::string_view name;
  std::vector<Value> operands;
  /// As StableHLO writes them: "dimension = 0 : i64, ...".
  std::string attributes;
  /// For each operand; an empty function where no gradient passes, because the result only has steps there. No list at all:
  /// the operation has no gradient yet.
  std::vector<Pullback> pullbacks;
  std::vector<Region> regions = {};
  std::vector<Value> results = {};
  /// Of the trace, which sets it; none where it comes from no Scope.
  const Location* location = nullptr;
};

/// An argument whose memory becomes that of a result, by their places in the lists.
struct Donation {
  std::size_t argument;
  std::size_t result;
};

/// The program that this thread writes down: its operations, in order. While it lives, operations on traced values add to
/// it; where traces are nested, to the innermost.
class Trace {
 public:
  /// For so many replicas, and so many rows in the batch of each where the program has batches. Throws InvalidArgument for
  /// no replica, or no row.
  explicit Trace(std::size_t replicas, std::optional<std::size_t> rows = std::nullopt);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { current_ = outer_; }

  /// The innermost one of this thread. Throws InvalidArgument where there is none.
  [[nodiscard]] static Trace& current();

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// The rows of a replica's batch. Throws InvalidArgument where the program has no batches.
  [[nodiscard]] std::size_t batch() const;

  /// One more argument of the program, at any time, also while a region is traced.
  [[nodiscard]] Value argument(const Type& type);
  /// Records an operation, and gives its result, or its results.
  [[nodiscard]] Value add(Operation operation, const Type& result);
  [[nodiscard]] std::vector<Value> add(Operation operation, const std::vector<Type>& results);
  /// The operations that `body` records: it is called once, with arguments of these types, and returns the results.
  [[nodiscard]] Region region(const std::vector<Type>& arguments,
                              const std::function<std::vector<Value>(const std::vector<Value>&)>& body);

  /// Throw InvalidArgument for a value of another program, or of a region that is over.
  [[nodiscard]] const Type& type(Value value) const { return entry(value).type; }
  /// How the program names it: "%3".
  [[nodiscard]] std::string name(Value value) const;

  /// How many operations there are, with those of all regions.
  [[nodiscard]] std::size_t operations() const noexcept { return operations_.size(); }
  [[nodiscard]] const Operation& operation(std::size_t number) const { return operations_.at(number); }
  /// Whether `value` can be used now: it is of this program, and of no region that is over.
  [[nodiscard]] bool is_visible(Value value) const noexcept;

  /// The location of the operations that are recorded from now on, and that of those before.
  const Location* enter(const Location* location) noexcept { return std::exchange(location_, location); }
  [[nodiscard]] const Location* location() const noexcept { return location_; }
  [[nodiscard]] const Location* known(Location location);

  /// The module of StableHLO whose function `main` has these arguments and results. Throws InvalidArgument where an argument
  /// of the program is not listed.
  [[nodiscard]] std::string module(std::span<const Value> arguments, std::span<const Value> results,
                                   std::span<const Donation> donations = {}) const;

 private:
  struct Entry {
    Type type;
    /// The number of the region that has it; 0 is the program.
    std::size_t region;
  };
  /// A region that is being traced.
  struct Open {
    std::size_t number;
    std::vector<std::size_t> operations = {};
  };

  [[nodiscard]] const Entry& entry(Value value) const;
  [[nodiscard]] Value new_value(const Type& type, std::size_t region);
  void write(std::string& out, const std::vector<std::size_t>& operations) const;
  void write(std::string& out, const Region& region) const;

  inline static thread_local Trace* current_ = nullptr;

  std::size_t replicas_;
  std::optional<std::size_t> rows_;
  std::uint64_t id_;
  Trace* outer_;
  std::deque<Entry> values_;          // whose types stay in place while others are added
  std::deque<Operation> operations_;  // which stay in place while their rules record others
  std::vector<Open> open_{{0}};
  std::size_t regions_ = 0;
  std::vector<Value> arguments_;
  std::deque<Location> locations_;  // few, which stay in place
  const Location* location_ = nullptr;
};

/// While it lives, operations of the program that is traced come from a part of it with this name: XLA's errors and profiles
/// name it, and a line of C++. Scopes are nested, and one without a line has that of the one around it.
///
///     const hlo::Scope scope{"encoder", hlo::here()};
class Scope {
 public:
  /// Throws InvalidArgument where no program is traced.
  explicit Scope(std::string_view name, std::optional<SourceLine> place = std::nullopt);
  /// Of the gradient of an operation.
  explicit Scope(const Operation& operation);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { trace_.enter(outer_); }

 private:
  Trace& trace_;
  const Location* outer_;
};

/// The text of a module as if none of its operations came from a Scope: what a program computes does not depend on where it
/// is written.
[[nodiscard]] std::string without_locations(std::string_view text);

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/trace.ipp>
#endif
