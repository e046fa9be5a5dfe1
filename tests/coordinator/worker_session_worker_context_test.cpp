#include <dist/coordinator/worker_session.hpp>

#include <memory>

#include <doctest/doctest.h>

TEST_CASE("WorkerContext describes the position of the worker (spec L11)") {
  dist::detail::WorkerSession session{{2, 5, 1, {"a:1"}}};
  session.keep(3, {std::make_shared<double>(0.5), &dist::detail::type_mark<double>});
  bool gone = false;
  const auto is_gone = [&] { return gone; };
  dist::detail::FunctionRun its{&session, is_gone};
  const dist::WorkerContext worker{its};
  CHECK(worker.index() == 2);
  CHECK(worker.num_workers() == 5);
  CHECK(worker.servers().at(0) == "a:1");
  CHECK(worker.input_context() == dist::InputContext{5, 2, 1});
  CHECK(worker.get(dist::PerWorker<double>{3}) == 0.5);
  worker.get(dist::PerWorker<double>{3}) = 2;
  CHECK(worker.get(dist::PerWorker<double>{3}) == 2);
  CHECK_THROWS_AS(worker.get(dist::PerWorker<float>{3}), dist::ArchiveError);
  CHECK_FALSE(worker.stop_requested());
  gone = true;
  CHECK(worker.stop_requested());
  gone = false;
  session.end();
  CHECK(worker.stop_requested());
}
