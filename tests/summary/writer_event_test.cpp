#include <dist/summary/writer.hpp>

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::InvalidArgument;
using dist::summary::graph_event;
using dist::summary::summary_event;
using dist::summary::Value;
using dist::summary::version_event;
using dist_test::Wire;

TEST_CASE("the first event has the version") {
  const Wire event{version_event(1.5)};
  CHECK(event.real(1) == 1.5);
  CHECK(event.bytes(3) == "brain.Event:2");
  CHECK(event.size() == 2);
}

TEST_CASE("a summary has wall time, step, tag, tensor, and the name and content of its plugin") {
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{3'000'000'000}, std::int64_t{-1}}) {
    const Wire event{summary_event(2.25, step, "loss/train", Value{"scalars", "", "tensor"})};
    CHECK(event.real(1) == 2.25);
    CHECK(static_cast<std::int64_t>(event.integer(2)) == step);
    const Wire value = event.message(5).message(1);
    CHECK(value.bytes(1) == "loss/train");
    CHECK(value.bytes(8) == "tensor");
    const Wire plugin = value.message(9).message(1);
    CHECK(plugin.bytes(1) == "scalars");
    CHECK(plugin.size() == 1);
  }
  const Wire told{summary_event(0, 0, "a", Value{"hparams", "content", ""})};
  CHECK(told.message(5).message(1).message(9).message(1).bytes(2) == "content");
  CHECK_THROWS_AS(static_cast<void>(summary_event(0, 0, "", Value{})), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(summary_event(0, 0, "\xFF", Value{})), InvalidArgument);
}

TEST_CASE("a graph is stored completely") {
  const Wire event{graph_event(4, "graph")};
  CHECK(event.real(1) == 4);
  CHECK(event.bytes(4) == "graph");
}
