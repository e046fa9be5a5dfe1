#include <dist/hlo/trace.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <dist/core/text.hpp>
#include <support/what_throws.hpp>

using dist::hlo::ElementKind;
using dist::hlo::Operation;
using dist::hlo::Trace;
using dist::hlo::Value;

namespace {

const dist::hlo::Type number{ElementKind::f32, {}};

}  // namespace

TEST_CASE("a trace numbers arguments and results, stores their types, and writes operations in order") {
  Trace trace{2};
  CHECK(trace.replicas() == 2);
  const Value argument = trace.argument(number);
  const Value sum = trace.add({"add", {argument, argument}, "", {}}, number);
  const Value range = trace.add({"iota", {}, "iota_dimension = 0 : i64", {}}, {ElementKind::i32, {3}});
  CHECK(trace.name(argument) == "%0");
  CHECK(trace.name(sum) == "%1");
  CHECK(trace.type(sum) == number);
  CHECK(trace.type(range).shape == dist::Shape{3});
  CHECK(trace.operations() == 2);
  CHECK(trace.operation(0).operands == std::vector<Value>{argument, argument});
  const std::vector<Value> results{range, sum};
  CHECK(trace.module({&argument, 1}, results) ==
        "module @program attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {\n"
        "func.func @main(%0: tensor<f32>) -> (tensor<3xi32>, tensor<f32>) {\n"
        "%1 = \"stablehlo.add\"(%0, %0) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)\n"
        "%2 = \"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> (tensor<3xi32>)\n"
        "\"func.return\"(%2, %1) : (tensor<3xi32>, tensor<f32>) -> ()\n}\n}\n");
}

TEST_CASE("a region has its own operations and values, while new arguments belong to the program") {
  Trace trace{1};
  const Value before = trace.argument(number);
  std::vector<Value> inside, later;
  Operation operation{"all_reduce", {before}, "", {}};
  operation.regions.push_back(trace.region({number}, [&](const std::vector<Value>& arguments) {
    inside = {trace.add({"add", {arguments[0], before}, "", {}}, number)};
    later = {trace.argument(number)};
    CHECK(trace.is_visible(inside[0]));
    return inside;
  }));
  const Value result = trace.add(operation, number);
  CHECK_FALSE(trace.is_visible(inside[0]));
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(trace.add({"negate", inside, "", {}}, number));
        }).find("it was computed in the body of a loop that has ended") != std::string::npos);
  const std::vector<Value> arguments{later[0], before};
  const std::string module = trace.module(arguments, {&result, 1}, std::vector<dist::hlo::Donation>{{1, 0}});
  CHECK(module.find("@main(%3: tensor<f32>, %0: tensor<f32> {tf.aliasing_output = 0 : i32})") != std::string::npos);
  CHECK(module.find("%4 = \"stablehlo.all_reduce\"(%0) ({^bb0(%1: tensor<f32>):\n"
                    "%2 = \"stablehlo.add\"(%1, %0) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)\n"
                    "\"stablehlo.return\"(%2) : (tensor<f32>) -> ()\n}) : (tensor<f32>) -> (tensor<f32>)\n") !=
        std::string::npos);
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(trace.module({&before, 1}, {&result, 1}));
        }).find("its argument %3 is not listed") != std::string::npos);
}

TEST_CASE("the batch size is the number of rows of the trace") {
  CHECK(Trace{1, 32}.batch() == 32);
  CHECK_THROWS_AS((Trace{1, 0}), dist::InvalidArgument);
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(Trace{1}.batch());
        }).find("the program is traced without a number of rows") != std::string::npos);
}

TEST_CASE("the innermost trace of a thread is the current one, and a missing trace or zero replicas throws") {
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(Trace::current());
        }).find("this thread does not trace a program at the moment") != std::string::npos);
  {
    const Trace outer{1};
    CHECK(&Trace::current() == &outer);
    try {
      const Trace inner{1};
      CHECK(&Trace::current() == &inner);
      throw std::runtime_error{"left"};
    } catch (const std::runtime_error&) {
    }
    CHECK(&Trace::current() == &outer);
    CHECK_THROWS_AS(Trace{0}, dist::InvalidArgument);
    CHECK(&Trace::current() == &outer);
  }
  CHECK_THROWS_AS(static_cast<void>(Trace::current()), dist::InvalidArgument);
}

TEST_CASE("a value of another program is rejected, even with a valid number") {
  Trace outer{1};
  const Value value = outer.argument(number);
  Trace inner{1};
  static_cast<void>(inner.argument(number));
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(inner.name(value));
        }).find("A traced value belongs to another program") != std::string::npos);
}

TEST_CASE("operations record their scope, with the line of the nearest scope that has one") {
  CHECK_THROWS_AS(dist::hlo::Scope{"nothing"}, dist::InvalidArgument);
  Trace trace{1};
  std::vector<Value> values{trace.argument(number)};
  const auto recorded = [&] {
    values.push_back(trace.add({"negate", {values.back()}, "", {}}, number));
    const dist::hlo::Location* const location = trace.operation(trace.operations() - 1).location;
    return location == nullptr ? "nowhere" : to_string(*location);
  };
  CHECK(recorded() == "nowhere");
  {
    const int line = __LINE__ + 1;
    const dist::hlo::Scope outer{"step", dist::hlo::here()};
    {
      const dist::hlo::Scope inner{"layer \"2\""};
      CHECK(recorded() == dist::concat("step/layer '2' at ", __FILE__, ":", line));
      const dist::hlo::Scope of_gradient{trace.operation(1)};
      CHECK(recorded() == dist::concat("gradient of step/layer '2' at ", __FILE__, ":", line));
    }
    CHECK(recorded() == dist::concat("step at ", __FILE__, ":", line));
  }
  CHECK(recorded() == "nowhere");
  const std::string module = trace.module({&values.front(), 1}, {&values.back(), 1});
  CHECK(module.find("%2 = \"stablehlo.negate\"(%1) : (tensor<f32>) -> (tensor<f32>) loc(\"step/layer '2' at ") !=
        std::string::npos);
  CHECK(dist::hlo::without_locations(module).find(
            "%2 = \"stablehlo.negate\"(%1) : (tensor<f32>) -> (tensor<f32>)\n%3 = ") != std::string::npos);
}
