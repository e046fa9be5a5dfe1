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

/// A value of a traced program.
struct Value {
  std::uint64_t trace;  ///< the number of its Trace, which differs for every trace of the process
  std::size_t number;   ///< its index among the values of the trace

  friend bool operator==(Value, Value) = default;
};

/// Returns the gradient of an operand, from the operation's result and its gradient.
using Pullback = std::function<Value(Value result, Value gradient)>;

/// Operations nested in another operation, such as the body of a loop.
struct Region {
  std::vector<Value> arguments;  ///< the values that the region's operations receive, such as a loop's state

  /// Indices in the trace.
  std::vector<std::size_t> operations;
  std::vector<Value> results;  ///< the values that the region returns
};

/// The origin of an operation: "program/layer 2 (dense)", "cnn.cpp:40".
struct Location {
  std::string scope;  ///< the layer or function in the program
  std::string place;  ///< the line in the user's source, or empty

  friend bool operator==(const Location&, const Location&) = default;
};
/// Returns "program/layer 2 (dense) at cnn.cpp:40".
[[nodiscard]] std::string to_string(const Location& location);

/// A recorded operation of StableHLO or CHLO.
struct Operation {
  /// Without the dialect if it is StableHLO: "add", "chlo.erf".
  std::string_view name;
  std::vector<Value> operands;  ///< the arguments, values of the same trace

  /// In StableHLO syntax: "dimension = 0 : i64, ...".
  std::string attributes;
  /// One per operand, empty if the result is piecewise constant. An empty list means no known gradient.
  std::vector<Pullback> pullbacks;
  std::vector<Region> regions = {};  ///< nested operations, such as the body and condition of a loop
  std::vector<Value> results = {};   ///< set by the trace

  /// Set and owned by the trace; null outside of a Scope.
  const Location* location = nullptr;
};

/// The indices of an argument, and of the result that reuses its memory.
struct Donation {
  std::size_t argument;  ///< among the arguments of the program
  std::size_t result;    ///< among the results of the program
};

/// Records a program on this thread during its lifetime. With nested traces, the innermost records.
class Trace {
 public:
  /// Throws InvalidArgument if either number is 0.
  explicit Trace(std::size_t replicas, std::optional<std::size_t> rows = std::nullopt);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { current_ = outer_; }

  /// The innermost trace of this thread. Throws InvalidArgument if no program is being traced.
  [[nodiscard]] static Trace& current();

  /// The number of replicas of the program.
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// The rows of a replica's batch. Throws InvalidArgument if the program has no batches.
  [[nodiscard]] std::size_t batch() const;

  /// Adds an argument to the program, even while a region is traced.
  [[nodiscard]] Value argument(const Type& type);
  /// Records an operation, and returns its results.
  [[nodiscard]] Value add(Operation operation, const Type& result);
  /// Records an operation with several results.
  [[nodiscard]] std::vector<Value> add(Operation operation, const std::vector<Type>& results);
  /// Records `body`, which is called once with arguments of these types, and returns the results.
  [[nodiscard]] Region region(const std::vector<Type>& arguments,
                              const std::function<std::vector<Value>(const std::vector<Value>&)>& body);

  /// The type of a value. Throws InvalidArgument for a value of another program, or of a closed region.
  [[nodiscard]] const Type& type(Value value) const { return entry(value).type; }
  /// The value's name in the program: "%3". Throws InvalidArgument like `type`.
  [[nodiscard]] std::string name(Value value) const;

  /// The number of operations, including all regions.
  [[nodiscard]] std::size_t operations() const noexcept { return operations_.size(); }
  /// The operation with this index, in the order of recording. Throws std::out_of_range if it does not exist.
  [[nodiscard]] const Operation& operation(std::size_t number) const { return operations_.at(number); }
  /// True if the value belongs to this program, and to no closed region.
  [[nodiscard]] bool is_visible(Value value) const noexcept;

  /// Sets the location of subsequent operations, and returns the previous one.
  const Location* enter(const Location* location) noexcept { return std::exchange(location_, location); }
  /// The location of the operations that follow; null outside of a Scope.
  [[nodiscard]] const Location* location() const noexcept { return location_; }
  /// Returns the trace's copy of a location, which lives as long as the trace.
  [[nodiscard]] const Location* known(Location location);

  /// Returns a StableHLO module with function `main`. Throws InvalidArgument if the list lacks an argument of the
  /// program.
  [[nodiscard]] std::string module(std::span<const Value> arguments, std::span<const Value> results,
                                   std::span<const Donation> donations = {}) const;

 private:
  struct Entry {
    Type type;
    /// The number of the value's region; 0 is the program.
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
  std::deque<Entry> values_;          // references to types must stay valid
  std::deque<Operation> operations_;  // pullbacks record operations while they run
  std::vector<Open> open_{{0}};
  std::size_t regions_ = 0;
  std::vector<Value> arguments_;
  std::deque<Location> locations_;  // operations point to locations
  const Location* location_ = nullptr;
};

/// Names a part of the program during its lifetime: XLA's errors and profiles report this name and a line of C++.
/// Scopes nest; a scope without a line uses the line of the enclosing one.
///
///     const hlo::Scope scope{"encoder", hlo::here()};
class Scope {
 public:
  /// Throws InvalidArgument outside of a trace.
  explicit Scope(std::string_view name, std::optional<SourceLine> place = std::nullopt);
  /// The scope of an operation's gradient.
  explicit Scope(const Operation& operation);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { trace_.enter(outer_); }

 private:
  Trace& trace_;
  const Location* outer_;
};

/// Removes locations, which do not affect the computation.
[[nodiscard]] std::string without_locations(std::string_view text);

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/trace.ipp>
#endif
