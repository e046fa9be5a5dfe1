#include <dist/coordinator/per_worker.hpp>

#include <string>
#include <tuple>
#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

namespace {

using dist::ArchiveReader;
using dist::FunctionId;
using dist::FunctionTable;
using dist::InputContext;
using dist::Invocation;
using dist::WorkerContext;

constexpr auto add = [](WorkerContext& worker, int x, const std::string& name) {
  return name + std::to_string(x + static_cast<int>(worker.index()));
};
using Add = std::remove_const_t<decltype(add)>;
struct Times {
  int factor;
  int operator()(WorkerContext&, std::vector<int>& values) const {
    values.push_back(factor);
    return factor * values.at(0);
  }
};

using Workers = dist::WorkerList<dist::Local>;

std::vector<std::byte> run(const std::vector<std::byte>& message) {
  dist::detail::WorkerSession session{{4, 5, 1, {}}};
  const auto is_gone = [] { return false; };
  dist::detail::FunctionRun its{&session, is_gone};
  WorkerContext worker{its};
  ArchiveReader reader{message};
  return FunctionTable<Invocation<WorkerContext>>::find(reader.get<FunctionId>())(worker, reader);
}

}  // namespace

TEST_CASE("the message of a closure has its function and arguments (spec L02)") {
  const auto message = dist::detail::closure_message<Workers, Add, int, std::string>(add, 3, "x");
  CHECK(dist::from_bytes<std::string>(run(message)) == "x7");
  CHECK(dist::from_bytes<int>(run(dist::detail::closure_message<Workers, Times, std::vector<int>>(Times{5}, {7}))) ==
        35);
  static_assert(std::is_same_v<dist::detail::ResultOnWorker<Workers, Add, int, std::string>, std::string>);
}

TEST_CASE("the message of a resource has the function that creates it") {
  const auto maker = [](const InputContext& input, int x) { return x + static_cast<int>(input.input_pipeline_id()); };
  const auto message = dist::detail::resource_message<std::remove_const_t<decltype(maker)>, int>(maker, 3);
  ArchiveReader reader{message};
  dist::detail::WorkerSession session{{2, 4, 1, {}}};
  const auto made = FunctionTable<dist::detail::ResourceMaker>::find(reader.get<FunctionId>())(session, reader);
  CHECK(*static_cast<int*>(made.value.get()) == 5);
}

TEST_CASE("messages of closures and resources are distinguished") {
  const auto message = dist::detail::closure_message<Workers, Add, int, std::string>(add, 3, "x");
  ArchiveReader reader{message};
  const auto place = reader.get<FunctionId>();
  CHECK_THROWS_AS(FunctionTable<dist::detail::ResourceMaker>::find(place), dist::ArchiveError);
}
