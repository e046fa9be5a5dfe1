// GPUs: 2
#include <dist/variable/slices_deduplicator.hpp>

#include <doctest/doctest.h>

#include <dist/comm/all_reduce_slices.hpp>
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/device/cuda/thrust_policy.cuh>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

using dist::IndexedSlices;

namespace {

using OnCpu = dist::OneDevice<dist::Cpu>;
using OnGpus = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;

template <class S>
S strategy_of() {
  if constexpr (std::same_as<S, OnGpus>)
    return S{2};
  else
    return S{};
}

template <class Strategy, class T>
class OnDevice {
 public:
  OnDevice(dist::Shape dense_shape, std::size_t most_rows)
      : strategy_(strategy_of<Strategy>()),
        shape_(dense_shape),
        indices_(strategy_.template buffer<std::int64_t>(dist::Shape{most_rows})),
        values_(strategy_.template buffer<T>(dense_shape.with_rows(most_rows))),
        deduplicator_(strategy_, dense_shape, most_rows) {}

  /// Returns each replica's result for the same slices.
  std::vector<IndexedSlices<T>> deduplicated(const IndexedSlices<T>& slices) {
    return with(slices.indices(), slices.values().elements());
  }
  /// Returns each replica's result for indices and values that may not match.
  std::vector<IndexedSlices<T>> with(std::span<const std::int64_t> given_indices, std::span<const T> given_values) {
    const auto results = strategy_.run([&](auto& replica) {
      const auto& queue = replica.queue();
      const auto indices = indices_.component(replica).first(given_indices.size());
      const auto values = values_.component(replica).first(given_values.size());
      queue.copy(given_indices, indices);
      queue.copy(given_values, values);
      const auto unique = deduplicator_.deduplicate(replica, indices, values);
      IndexedSlices<T> result(unique.indices.size(), shape_);
      queue.copy(unique.indices, result.indices());
      queue.copy(unique.values, result.values().elements());
      queue.wait();
      return result;
    });
    const auto of_replicas = strategy_.local_results(results);
    return {of_replicas.begin(), of_replicas.end()};
  }

 private:
  Strategy strategy_;
  dist::Shape shape_;
  dist::ReplicaBuffer<std::int64_t, typename Strategy::Device> indices_;
  dist::ReplicaBuffer<T, typename Strategy::Device> values_;
  dist::SlicesDeduplicator<Strategy, T> deduplicator_;
};

/// Returns the text of the error that a replica throws, and checks its type.
template <class Error, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), Error);
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE_TEMPLATE("each index occurs once, in ascending order, with the sum of its rows (spec P14)", S, OnCpu,
                   OnGpus) {
  OnDevice<S, float> on_device{{8, 2}, 6};
  const IndexedSlices<float> slices{{5, 2, 5, 0, 2, 5}, {{6, 2}, {0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1}}, {8, 2}};
  const IndexedSlices<float> expected{{0, 2, 5}, {{3, 2}, {3, 1, 1 + 4, 2, 0 + 2 + 5, 3}}, {8, 2}};
  for (const auto& unique : on_device.deduplicated(slices)) CHECK(unique == expected);
  // Fewer rows, and none.
  const IndexedSlices<float> one{{7}, {{1, 2}, {8, 9}}, {8, 2}};
  for (const auto& unique : on_device.deduplicated(one)) CHECK(unique == one);
  for (const auto& unique : on_device.deduplicated(IndexedSlices<float>(0, {8, 2}))) CHECK(unique.rows() == 0);
}

TEST_CASE_TEMPLATE("any number of values of one index are added in the given order (spec P14)", S, OnCpu, OnGpus) {
  constexpr std::size_t rows = 200;
  IndexedSlices<float> slices(rows, {3, 2}), repeated(rows, {3, 2});
  std::vector<float> sums(2), sums_of_two(2);
  for (std::size_t row = 0; row < rows; ++row) {
    const float value = row % 7 == 0 ? 1e7f : row % 7 == 4 ? -1e7f : 1.0f / static_cast<float>(row + 1);
    slices.indices()[row] = static_cast<std::int64_t>(row * row % 3);
    repeated.indices()[row] = 2;
    for (std::size_t column = 0; column < 2; ++column) {
      const float element = column == 0 ? value : 3 * value;
      slices.values()(row, column) = repeated.values()(row, column) = element;
      sums[column] += element;
      if (row * row % 3 == 1) sums_of_two[column] += element;
    }
  }
  OnDevice<S, float> on_device{{3, 2}, rows};
  for (const auto& unique : on_device.deduplicated(repeated)) {
    REQUIRE(unique.rows() == 1);
    CHECK(unique.indices()[0] == 2);
    CHECK(std::vector<float>(unique.values().data(), unique.values().data() + 2) == sums);
  }
  for (const auto& unique : on_device.deduplicated(slices)) {
    CHECK(unique == dist::deduplicate(slices.view()));
    CHECK(std::vector<float>(unique.values().data() + 2, unique.values().data() + 4) == sums_of_two);
  }
}

TEST_CASE_TEMPLATE("the sums of 16-bit types are rounded once (spec P14)", S, OnCpu, OnGpus) {
  // From 2048 on, Float16 has only even numbers: 2048 + 1 is 2048 again, but 2048 + 1 + 1 is 2050.
  using dist::Float16;
  const IndexedSlices<Float16> slices{{1, 1, 1}, {{3, 1}, {Float16{2048.0f}, Float16{1.0f}, Float16{1.0f}}}, {2, 1}};
  OnDevice<S, Float16> on_device{{2, 1}, 3};
  for (const auto& unique : on_device.deduplicated(slices)) CHECK(static_cast<float>(unique.values()[0]) == 2050.0f);
}

TEST_CASE_TEMPLATE("slices that do not fit are rejected, and later ones work", S, OnCpu, OnGpus) {
  OnDevice<S, float> on_device{{4, 2}, 3};
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto error_with = [&]<class Error>(std::vector<std::int64_t> indices, std::size_t elements, const Error*) {
    return error_of<Error>([&] { on_device.with(indices, std::span{values}.first(elements)); });
  };
  constexpr const dist::InvalidArgument* invalid = nullptr;
  constexpr const dist::ShapeMismatch* mismatch = nullptr;
  CHECK(error_with({0, 4, 1}, 6, invalid).find("index 4 of an array with 4 rows") != std::string::npos);
  CHECK(error_with({0, 3, -1}, 6, invalid).find("index -1 of an array with 4 rows") != std::string::npos);
  CHECK(error_with({0, 3}, 6, mismatch).find("2 indices and 6 values for an array of shape [4, 2]") !=
        std::string::npos);
  for (const auto& unique : on_device.with(std::vector<std::int64_t>{3, 0, 3}, values))
    CHECK(unique == IndexedSlices<float>{{0, 3}, {{2, 2}, {3, 4, 1 + 5, 2 + 6}}, {4, 2}});
}

TEST_CASE("more slices than the capacity are rejected") {
  OnCpu strategy;
  dist::SlicesDeduplicator<OnCpu, float> small{strategy, {4}, 2};
  const std::vector<std::int64_t> indices{0, 1, 2};
  const std::vector<float> values{1, 2, 3};
  const std::string error = error_of<dist::InvalidArgument>([&] {
    strategy.run(
        [&](auto& replica) { static_cast<void>(small.deduplicate(replica, std::span{indices}, std::span{values})); });
  });
  CHECK(error.find("3 rows, and room for 2") != std::string::npos);
  CHECK_THROWS_AS((dist::SlicesDeduplicator<OnCpu, float>{strategy, dist::Shape{}, 2}), dist::ShapeMismatch);
}
