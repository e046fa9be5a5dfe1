#include <dist/summary/writer.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::InvalidArgument;
using dist::summary::graph_def;
using dist::summary::Node;
using dist_test::Wire;

TEST_CASE("nodes have names, ops, inputs, and attributes") {
  const Node nodes[] = {
      {.name = "x", .op = "Placeholder", .shape = {-1, 4}},
      {.name = "block/dense", .op = "Dense", .inputs = {"x", "x"}, .attributes = {{"units", "10"}}},
  };
  const Wire graph{graph_def(nodes)};
  CHECK(graph.message(4).integer(1) == 22);
  const auto found = graph.strings(1);
  REQUIRE(found.size() == 2);
  const Wire x{found[0]};
  CHECK(x.bytes(1) == "x");
  CHECK(x.bytes(2) == "Placeholder");
  CHECK(x.all(3).empty());
  const Wire entry = x.message(5);
  CHECK(entry.bytes(1) == "_output_shapes");
  const auto axes = entry.message(2).message(1).message(7).strings(2);
  REQUIRE(axes.size() == 2);
  CHECK(static_cast<std::int64_t>(Wire{axes[0]}.integer(1)) == -1);
  CHECK(Wire{axes[1]}.integer(1) == 4);
  const Wire dense{found[1]};
  CHECK(dense.bytes(1) == "block/dense");
  CHECK(dense.strings(3) == std::vector<std::string>{"x", "x"});
  CHECK(dense.message(5).bytes(1) == "units");
  CHECK(dense.message(5).message(2).bytes(2) == "10");
}

TEST_CASE("an inconsistent graph is rejected by name") {
  const auto refuse = [](const std::vector<Node>& nodes, const char* because) {
    CHECK_THROWS_WITH_AS(static_cast<void>(graph_def(nodes)), doctest::Contains(because), InvalidArgument);
  };
  refuse({{.name = "a", .op = "A"}, {.name = "b", .op = "B"}, {.name = "a", .op = "C"}},
         "Two nodes of a graph are called 'a'");
  refuse({{.name = "a", .op = "A", .inputs = {"b"}}},
         "Node 'a' of a graph has an unknown input (no node is called 'b')");
  refuse({{.name = "", .op = "A"}}, "the name of a node that is empty");
  refuse({{.name = "a", .op = ""}}, "an op of node 'a' that is empty");
  refuse({{.name = "a", .op = "A", .attributes = {{"\n", ""}}}}, "an attribute of node 'a' that is not text");
}
