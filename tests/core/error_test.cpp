#include <dist/core/error.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

TEST_CASE("an error contains the problem, the reason and a suggestion") {
  const dist::Error error("Variable 'w' has no rows", "its shape is [0, 3]", "Give it a row");
  CHECK(std::string(error.what()) == "Variable 'w' has no rows (its shape is [0, 3]). Give it a row.");
}

TEST_CASE("a suggestion with a full stop gets no second one") {
  CHECK(std::string(dist::Error("p", "w", "Do it.").what()) == "p (w). Do it.");
  CHECK(std::string(dist::Error("p", "w", "Do it").what()) == "p (w). Do it.");
}

TEST_CASE_TEMPLATE("every kind of error is caught as itself, as Error and as std::runtime_error", Kind,
                   dist::InvalidArgument, dist::ShapeMismatch, dist::WrongStrategy, dist::CollectiveMismatch,
                   dist::DeadlineExceeded, dist::OutOfMemory) {
  const auto fail = [] { throw Kind("Problem", "why", "Suggestion"); };
  CHECK_THROWS_WITH_AS(fail(), "Problem (why). Suggestion.", Kind);
  CHECK_THROWS_WITH_AS(fail(), "Problem (why). Suggestion.", dist::Error);
  CHECK_THROWS_WITH_AS(fail(), "Problem (why). Suggestion.", std::runtime_error);
}

TEST_CASE("different kinds of errors are not related") {
  static_assert(!std::derived_from<dist::InvalidArgument, dist::ShapeMismatch>);
  static_assert(!std::derived_from<dist::CollectiveMismatch, dist::WrongStrategy>);
  static_assert(!std::derived_from<dist::ReplicaError, dist::OutOfMemory>);
  bool reached_the_base = false;
  try {
    throw dist::OutOfMemory("p", "w", "s");
  } catch (const dist::InvalidArgument&) {
    FAIL("an OutOfMemory was caught as an InvalidArgument");
  } catch (const dist::Error&) {
    reached_the_base = true;
  }
  CHECK(reached_the_base);
}

TEST_CASE("a file error contains its file in the text and as a value") {
  const dist::FileError error("data/train.idx", "is truncated", "8 bytes of 16", "Download it again");
  CHECK(std::string(error.what()) == "File 'data/train.idx' is truncated (8 bytes of 16). Download it again.");
  CHECK(error.path() == "data/train.idx");
}

TEST_CASE("a replica error contains the replica, the cause and the cause's text") {
  const auto cause = std::make_exception_ptr(std::out_of_range("index 7"));
  const dist::ReplicaError error(2, 4, "index 7", cause);
  CHECK(error.replica() == 2);
  CHECK(error.cause() == cause);
  CHECK(std::string(error.what()) ==
        "Replica 2 failed in its replica function (one of 4 replicas). It threw: index 7.");
  CHECK_THROWS_WITH_AS(std::rethrow_exception(error.cause()), "index 7", std::out_of_range);
}

TEST_CASE("a replica error caused by a library error ends with its text") {
  const dist::ShapeMismatch inner("Shapes differ", "[1] and [2]", "Use one shape");
  const dist::ReplicaError outer(0, 1, inner.what(), std::make_exception_ptr(inner));
  const std::string whole = outer.what();
  const std::string end = inner.what();
  REQUIRE(whole.size() > end.size());
  CHECK(whole.substr(whole.size() - end.size()) == end);
}

TEST_CASE("errors outlive the strings from which they were made") {
  std::exception_ptr kept;
  {
    std::string path = "some/long/path/that/does/not/fit/in/place";
    kept = std::make_exception_ptr(dist::FileError(path, "is missing", "no such file", "Check the name"));
    path.assign(path.size(), '#');
  }
  try {
    std::rethrow_exception(kept);
  } catch (const dist::FileError& error) {
    CHECK(error.path() == "some/long/path/that/does/not/fit/in/place");
  }
}

TEST_CASE("an error escapes control characters and limits its length") {
  const dist::Error error{"File '\x1b]0;owned\a' is bad", "line one\nline two", std::string(1'000'000, 'x')};
  const std::string what = error.what();
  CHECK(what.starts_with("File '\\x1b]0;owned\\x07' is bad (line one\nline two). xxx"));
  CHECK(what.ends_with("x... (1000000 bytes)."));
  CHECK(what.size() < 5000);
}
