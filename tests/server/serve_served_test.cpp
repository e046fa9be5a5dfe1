#include <dist/server/serve.hpp>

#include <vector>

#include <dist/core/error.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

using dist::ClusterSpec;
using dist::TaskType;
using dist::server::Served;
using dist::server::served_by;

TEST_CASE("served_by returns workers and parameter servers with their addresses") {
  const ClusterSpec cluster{
      {TaskType::chief, {"c:1"}}, {TaskType::parameter_server, {"[::1]:2", "b:3"}}, {TaskType::worker, {"Host-A:4"}}};
  CHECK(served_by(cluster, "TF_CONFIG") == std::vector<Served>{{{TaskType::worker, 0}, {"host-a", "4"}},
                                                               {{TaskType::parameter_server, 0}, {"::1", "2"}},
                                                               {{TaskType::parameter_server, 1}, {"b", "3"}}});
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(served_by({{TaskType::worker, {"a"}}}, "TF_CONFIG"));
        }).starts_with("The address 'a' of worker 0 of TF_CONFIG cannot be used"));
}
