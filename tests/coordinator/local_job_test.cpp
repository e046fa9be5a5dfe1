#include <dist/coordinator/local_job.hpp>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>
#include <dist/strategy/parameter_server.hpp>

TEST_CASE("a job of threads ends with its coordinator, or without one") {
  {
    const dist::LocalJob job{2, 1};
    const dist::ParameterServer<dist::Local> strategy{job.resolver()};
    CHECK(strategy.num_parameter_servers() == 2);
    CHECK(strategy.num_workers() == 1);
  }
  { const dist::LocalJob without_coordinator{1, 1}; }
}

TEST_CASE("a second strategy on an ended job is an error at once") {
  const dist::LocalJob job{1, 1};
  const dist::SimpleResolver resolver = job.resolver();
  { const dist::ParameterServer<dist::Local> strategy{resolver}; }
  CHECK_THROWS_WITH_AS(
      (dist::ParameterServer<dist::Local>{resolver}),
      doctest::Contains("has ended (the coordinator that it served has finished its work). Create a new job"),
      dist::InvalidArgument);
}

TEST_CASE("a job needs parameter servers and workers") {
  CHECK_THROWS_WITH_AS((dist::LocalJob{0, 1}), doctest::Contains("LocalJob lists no parameter server"),
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((dist::LocalJob{1, 0}), doctest::Contains("LocalJob lists no worker"), dist::InvalidArgument);
}
