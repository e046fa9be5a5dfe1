#include <dist/core/error.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <new>
#include <stdexcept>

using dist::exit_code;

TEST_CASE("exit codes distinguish user errors from transient errors") {
  CHECK(exit_code(dist::InvalidArgument("p", "w", "s")) == 78);
  CHECK(exit_code(dist::ShapeMismatch("p", "w", "s")) == 78);
  CHECK(exit_code(dist::WrongStrategy("p", "w", "s")) == 78);
  CHECK(exit_code(dist::CollectiveMismatch("p", "w", "s")) == 78);
  CHECK(exit_code(dist::FileError("a.npy", "is missing", "w", "s")) == 78);
  CHECK(exit_code(dist::Error("p", "w", "s")) == 78);
  CHECK(exit_code(dist::DeadlineExceeded("p", "w", "s")) == 75);
  CHECK(exit_code(dist::Unavailable(1, "east", "w", "s")) == 75);
  CHECK(exit_code(dist::PeerError(1, "east", "bad")) == 75);
  CHECK(exit_code(dist::OutOfMemory("p", "w", "s")) == 75);
}

TEST_CASE("other exceptions are program failures, not transient errors") {
  CHECK(exit_code(std::runtime_error("bad")) == 1);
  CHECK(exit_code(std::bad_alloc()) == 1);
}

TEST_CASE("the error of a replica has the exit code of its cause") {
  const auto of = [](std::exception_ptr cause) { return exit_code(dist::ReplicaError(0, 2, "what", cause)); };
  CHECK(of(std::make_exception_ptr(dist::DeadlineExceeded("p", "w", "s"))) == 75);
  CHECK(of(std::make_exception_ptr(dist::InvalidArgument("p", "w", "s"))) == 78);
  CHECK(of(std::make_exception_ptr(std::runtime_error("bad"))) == 1);
  CHECK(of(std::make_exception_ptr(7)) == 1);
  CHECK(of(nullptr) == 1);
}
