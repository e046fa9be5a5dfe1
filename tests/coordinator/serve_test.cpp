#include <dist/coordinator/serve.hpp>

#include <doctest/doctest.h>

#include <thread>

#include <dist/cluster/simple_resolver.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/server/session.hpp>

using dist::ClusterSpec;
using dist::Local;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;

TEST_CASE("a worker runs what is scheduled until its coordinator has done its work; the chief does not serve") {
  const ClusterSpec cluster{{TaskType::parameter_server, {"serves:1"}}, {TaskType::worker, {"serves:2"}}};
  CHECK_FALSE(dist::serve<Local>(SimpleResolver{cluster, Task{TaskType::chief, 0}}));
  const auto serves = [&](Task task) { CHECK(dist::serve<Local>(SimpleResolver{cluster, task})); };
  const Task ps{TaskType::parameter_server, 0}, worker{TaskType::worker, 0};
  std::thread first{serves, ps}, second{serves, worker};
  {
    const dist::server::Session<Local> session{{{ps, {"serves", "1"}}, {worker, {"serves", "2"}}}};
    dist::ClusterCoordinator coordinator{dist::WorkerList<Local>{{{"serves", "2"}}}};
    CHECK(coordinator.schedule([](dist::WorkerContext&, int a) { return 2 * a; }, 21).fetch() == 42);
  }
  first.join();
  second.join();
}
