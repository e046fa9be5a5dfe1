#include <dist/coordinator/worker_session.hpp>

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

using dist::detail::type_mark;
using dist::detail::WorkerResource;
using dist::detail::WorkerSession;
using support::what_throws;

TEST_CASE("a session has the worker's identity, and finds parameter servers by address") {
  const WorkerSession session{{1, 3, 2, {"a:1", "b:2"}}};
  CHECK(session.input_context() == dist::InputContext{3, 1, 2});
  CHECK(session.server_at("a:1") == 0);
  CHECK(session.server_at("b:2") == 1);
  CHECK(session.server_at("c:3") == 2);
}

TEST_CASE("a resource is found by number and type, or throws the error of its creation (spec L10)") {
  WorkerSession session{{}};
  const auto number = std::make_shared<int>(5);
  session.keep(0, {number, &type_mark<int>});
  session.keep(0, {std::make_shared<int>(6), &type_mark<int>});  // the first one stays, because functions use it
  session.keep(1, {nullptr, nullptr, {dist::rpc::Failure::handler, "no file", "dist::FileError"}});
  CHECK(session.resource(0, &type_mark<int>) == number.get());
  CHECK(what_throws<dist::ArchiveError>([&] { static_cast<void>(session.resource(0, &type_mark<float>)); }) ==
        "A function uses a resource that this worker does not have (resource 0 is of another type). Give a function "
        "resources of its coordinator only.");
  CHECK(what_throws<dist::ArchiveError>([&] { static_cast<void>(session.resource(2, &type_mark<int>)); }) ==
        "A function uses a resource that this worker does not have (no resource has the number 2). Give a function "
        "resources of its coordinator only.");
  try {
    static_cast<void>(session.resource(1, &type_mark<int>));
    FAIL("there is none");
  } catch (const dist::detail::ResourceError& error) {
    CHECK(error.outcome().thrown == "dist::FileError");
    CHECK(error.what() == std::string("no file"));
  }
}

TEST_CASE("one function of a session runs at a time, until end_function") {
  WorkerSession session{{}};
  CHECK(session.begin_function());
  CHECK_FALSE(session.begin_function());
  session.end_function();
  CHECK(session.begin_function());
  CHECK_FALSE(session.ended());
  session.end();
  CHECK(session.ended());
}
