#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/hlo/trace.hpp>

namespace dist::hlo {

namespace detail {

[[nodiscard]] DIST_INLINE std::uint64_t next_trace() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace detail

DIST_INLINE Trace::Trace(std::size_t replicas, std::optional<std::size_t> rows)
    : replicas_(replicas), rows_(rows), id_(detail::next_trace()), outer_(current_) {
  if (replicas == 0)
    throw InvalidArgument("A program cannot be traced", "it has no replicas", "Request one replica or more");
  if (rows == 0)
    throw InvalidArgument("A program cannot be traced", "its batch has no rows", "Request one row or more");
  current_ = this;
}

DIST_INLINE Trace& Trace::current() {
  if (current_ == nullptr)
    throw InvalidArgument("A traced value was created or used outside of a program",
                          "this thread does not trace a program at the moment",
                          "Create constants and compute in the function that is given to hlo::trace");
  return *current_;
}

DIST_INLINE std::size_t Trace::batch() const {
  if (!rows_)
    throw InvalidArgument("An array with the extent hlo::batch does not fit this program",
                          "the program is traced without a number of rows",
                          "Give hlo::trace the number of rows, after the number of replicas");
  return *rows_;
}

DIST_INLINE Value Trace::new_value(const Type& type, std::size_t region) {
  values_.push_back({type, region});
  return {id_, values_.size() - 1};
}

DIST_INLINE Value Trace::argument(const Type& type) { return arguments_.emplace_back(new_value(type, 0)); }

DIST_INLINE Value Trace::add(Operation operation, const Type& result) {
  return add(std::move(operation), std::vector<Type>{result}).front();
}

DIST_INLINE std::vector<Value> Trace::add(Operation operation, const std::vector<Type>& results) {
  for (const Value operand : operation.operands) static_cast<void>(entry(operand));
  for (const Type& type : results) operation.results.push_back(new_value(type, open_.back().number));
  operation.location = location_;
  open_.back().operations.push_back(operations_.size());
  return operations_.emplace_back(std::move(operation)).results;
}

DIST_INLINE Region Trace::region(const std::vector<Type>& arguments,
                                 const std::function<std::vector<Value>(const std::vector<Value>&)>& body) {
  struct Closed {
    std::vector<Open>& open;
    ~Closed() { open.pop_back(); }
  };
  Region region;
  open_.push_back({++regions_});
  const Closed closed{open_};
  for (const Type& type : arguments) region.arguments.push_back(new_value(type, regions_));
  region.results = body(region.arguments);
  for (const Value result : region.results) static_cast<void>(entry(result));
  region.operations = std::move(open_.back().operations);
  return region;
}

DIST_INLINE bool Trace::is_visible(Value value) const noexcept {
  return value.trace == id_ && std::any_of(open_.begin(), open_.end(), [&](const Open& open) {
           return open.number == values_[value.number].region;
         });
}

DIST_INLINE const Trace::Entry& Trace::entry(Value value) const {
  if (value.trace != id_)
    throw InvalidArgument("A traced value belongs to another program",
                          "it was computed while another function was traced",
                          "Give it to this program as an argument, or compute it there");
  if (!is_visible(value))
    throw InvalidArgument("A traced value is out of scope", "it was computed in the body of a loop that has ended",
                          "Return it from the body, as part of the loop's state");
  return values_[value.number];
}

DIST_INLINE std::string Trace::name(Value value) const {
  static_cast<void>(entry(value));
  return concat("%", value.number);
}

namespace detail {

/// `%1, %2`
[[nodiscard]] DIST_INLINE std::string names_of(std::span<const Value> values) {
  return dist::joined(values, ", ", [](Value value) { return concat("%", value.number); });
}

/// `(tensor<f32>, tensor<2xi32>)`
template <class TypeOf>
[[nodiscard]] std::string types_of(std::span<const Value> values, const TypeOf& type_of) {
  return concat("(", dist::joined(values, ", ", type_of), ")");
}

}  // namespace detail

DIST_INLINE void Trace::write(std::string& out, const Region& region) const {
  const auto type_of = [&](Value value) { return to_string(values_[value.number].type); };
  out += "{";
  const auto typed = [&](Value argument) { return concat("%", argument.number, ": ", type_of(argument)); };
  if (!region.arguments.empty()) out += concat("^bb0(", dist::joined(region.arguments, ", ", typed), "):");
  out += "\n";
  write(out, region.operations);
  out += concat("\"stablehlo.return\"(", detail::names_of(region.results),
                ") : ", detail::types_of(region.results, type_of), " -> ()\n}");
}

// MLIR's generic form, the same for all operations.
DIST_INLINE void Trace::write(std::string& out, const std::vector<std::size_t>& operations) const {
  const auto type_of = [&](Value value) { return to_string(values_[value.number].type); };
  for (const std::size_t number : operations) {
    const Operation& operation = operations_[number];
    out += concat(detail::names_of(operation.results), " = \"",
                  operation.name.find('.') == std::string_view::npos ? "stablehlo." : "", operation.name, "\"(",
                  detail::names_of(operation.operands), ")");
    for (const Region& region : operation.regions) {
      out += &region == &operation.regions.front() ? " (" : ", ";
      write(out, region);
    }
    if (!operation.regions.empty()) out += ")";
    if (!operation.attributes.empty()) out += concat(" {", operation.attributes, "}");
    out += concat(" : ", detail::types_of(operation.operands, type_of), " -> ",
                  detail::types_of(operation.results, type_of));
    if (operation.location != nullptr) out += concat(" loc(\"", *operation.location, "\")");
    out += "\n";
  }
}

DIST_INLINE std::string Trace::module(std::span<const Value> arguments, std::span<const Value> results,
                                      std::span<const Donation> donations) const {
  for (const Value argument : arguments_)
    if (std::find(arguments.begin(), arguments.end(), argument) == arguments.end())
      throw InvalidArgument("The module of a program cannot be created",
                            concat("its argument ", name(argument), " is not listed"),
                            "List each argument that was created while the program was traced");
  const auto type_of = [&](Value value) { return to_string(type(value)); };
  std::string parameters;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    parameters += concat(i == 0 ? "" : ", ", name(arguments[i]), ": ", type_of(arguments[i]));
    for (const Donation donation : donations)
      if (donation.argument == i) parameters += concat(" {tf.aliasing_output = ", donation.result, " : i32}");
  }
  const std::string types = detail::types_of(results, type_of);
  std::string out =
      concat("module @program attributes {mhlo.num_replicas = ", replicas_,
             " : i32, mhlo.num_partitions = 1 : i32} {\nfunc.func @main(", parameters, ") -> ", types, " {\n");
  write(out, open_.front().operations);
  out += concat("\"func.return\"(", detail::names_of(results), ") : ", types, " -> ()\n}\n}\n");
  return out;
}

DIST_INLINE const Location* Trace::known(Location location) {
  const auto found = std::find(locations_.begin(), locations_.end(), location);
  return found != locations_.end() ? &*found : &locations_.emplace_back(std::move(location));
}

DIST_INLINE std::string to_string(const Location& location) {
  return location.place.empty() ? location.scope : concat(location.scope, " at ", location.place);
}

DIST_INLINE Scope::Scope(std::string_view name, std::optional<SourceLine> place)
    : trace_(Trace::current()), outer_(trace_.location()) {
  Location inner = outer_ == nullptr ? Location{} : *outer_;
  inner.scope += concat(inner.scope.empty() ? "" : "/", name);
  if (place) inner.place = concat(place->file, ":", place->line);
  for (std::string* const part : {&inner.scope, &inner.place})
    std::replace_if(
        part->begin(), part->end(), [](char c) { return c == '"' || c == '\\' || c == '\n'; }, '\'');
  trace_.enter(trace_.known(std::move(inner)));
}

DIST_INLINE Scope::Scope(const Operation& operation) : trace_(Trace::current()), outer_(trace_.location()) {
  if (operation.location != nullptr)
    trace_.enter(trace_.known({concat("gradient of ", operation.location->scope), operation.location->place}));
}

DIST_INLINE std::string without_locations(std::string_view text) {
  constexpr std::string_view begin = " loc(\"", end = "\")\n";
  std::string rest;
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin)) {
    rest += text.substr(0, at);
    text.remove_prefix(text.find(end, at) + end.size() - 1);
  }
  return rest.append(text);
}

}  // namespace dist::hlo
