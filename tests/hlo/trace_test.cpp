#include <dist/hlo/trace.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include <support/what_throws.hpp>

using dist::hlo::Trace;
using dist::hlo::Value;

TEST_CASE("a trace numbers arguments and operations, and writes a line for each operation") {
  Trace trace{2};
  CHECK(trace.replicas() == 2);
  const Value argument = trace.argument();
  const Value sum = trace.add("stablehlo.add %0, %0 : tensor<f32>");
  trace.add_line("return");
  CHECK(trace.name(argument) == "%0");
  CHECK(trace.name(sum) == "%1");
  CHECK(trace.name({sum.trace, sum.number, 2}) == "%1#2");
  CHECK(trace.text() == "%1 = stablehlo.add %0, %0 : tensor<f32>\nreturn\n");
}

TEST_CASE("a region takes its operations out of the program, and numbers go on") {
  Trace trace{1};
  static_cast<void>(trace.add("a"));
  CHECK(trace.region([&] { static_cast<void>(trace.add("b")); }) == "%1 = b\n");
  static_cast<void>(trace.add("c"));
  CHECK(trace.text() == "%0 = a\n%2 = c\n");
}

TEST_CASE("the innermost trace of a thread is the current one; without one, or for no replica, an error says so") {
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(Trace::current());
        }).find("this thread traces none at the moment") != std::string::npos);
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

TEST_CASE("a value of another program is refused, also where its number fits") {
  Trace outer{1};
  const Value value = outer.argument();
  Trace inner{1};
  static_cast<void>(inner.argument());
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(inner.name(value));
        }).find("A traced value belongs to another program") != std::string::npos);
}
