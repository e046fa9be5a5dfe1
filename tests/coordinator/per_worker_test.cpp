#include <dist/coordinator/per_worker.hpp>

#include <string>
#include <tuple>
#include <type_traits>

#include <dist/data/range.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

using dist::InputContext;
using dist::PerWorkerIterator;

constexpr auto numbers = [](const InputContext& input, int count) {
  return dist::data::range(0, count + static_cast<int>(input.input_pipeline_id()));
};
constexpr auto word = [](const InputContext&, const std::string& said) { return said + "!"; };

template <class Maker, class... Arguments>
auto made(const InputContext& input, const Maker& maker, const Arguments&... arguments) {
  const auto bytes = dist::ArchiveWriter{}.put(maker).put(std::tuple{arguments...}).take();
  dist::ArchiveReader archive{bytes};
  dist::detail::WorkerSession session{
      {input.input_pipeline_id(), input.num_input_pipelines(), input.num_replicas_in_sync(), {}}};
  return dist::detail::make_resource<Maker, Arguments...>(session, archive);
}

}  // namespace

TEST_CASE("an iterator makes one pass over its dataset, and another after restart (spec L09)") {
  PerWorkerIterator iterator{dist::data::range(0, 3)};
  for (std::int64_t i = 0; i < 3; ++i) CHECK(iterator.next() == i);
  for (int again = 0; again < 2; ++again)
    CHECK(support::what_throws<dist::OutOfData>([&] { static_cast<void>(iterator.next()); }) ==
          "The dataset of a worker has no more elements (its pass has ended). Schedule no more steps than it has "
          "elements, "
          "call restart(), or repeat the dataset.");
  std::int64_t element = 9;
  CHECK_FALSE(iterator.next(element));
  iterator.restart();
  CHECK(iterator.next(element));
  CHECK(element == 0);
}

TEST_CASE("another pass has another epoch") {
  const auto dataset = dist::data::range(0, 100) | dist::data::shuffle(100, 1);
  PerWorkerIterator iterator{dataset};
  const auto first = iterator.next(), second = iterator.next();
  iterator.restart();
  CHECK(std::pair{iterator.next(), iterator.next()} != std::pair{first, second});
}

TEST_CASE("a resource of a dataset is an iterator, and otherwise the function's result (spec L09, L10)") {
  const auto data = made({4, 2, 1}, numbers, 1);
  using Iterator = PerWorkerIterator<dist::data::RangeDataset>;
  REQUIRE(data.type == &dist::detail::type_mark<Iterator>);
  for (std::int64_t i = 0; i < 3; ++i) CHECK(static_cast<Iterator*>(data.value.get())->next() == i);
  const auto text = made({}, word, std::string("hello"));
  REQUIRE(text.type == &dist::detail::type_mark<std::string>);
  CHECK(*static_cast<std::string*>(text.value.get()) == "hello!");
}

TEST_CASE("a function on a worker gets the objects of its PerWorker arguments (spec L03)") {
  dist::detail::WorkerSession session{{}};
  session.keep(0, made({}, word, std::string("hello")));
  const auto is_gone = [] { return false; };
  dist::detail::FunctionRun its{&session, is_gone};
  dist::WorkerContext worker{its};
  int plain = 1;
  dist::PerWorker<std::string> name{0};
  static_assert(std::is_same_v<dist::detail::OnWorker<int>, int&>);
  static_assert(std::is_same_v<dist::detail::OnWorker<dist::PerWorker<std::string>>, std::string&>);
  const auto function = [](dist::WorkerContext&, int& x, std::string& text) -> std::string& {
    ++x;
    return text += "?";
  };
  dist::detail::FunctionOnWorker<dist::WorkerList<dist::Local>, std::remove_const_t<decltype(function)>> called{
      function};
  CHECK(called(worker, plain, name) == "hello!?");
  CHECK(plain == 2);
  CHECK(worker.get(name) == "hello!?");
}
