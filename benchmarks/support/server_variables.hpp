#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/net/endpoint.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/server/client.hpp>

#include "turns.hpp"

namespace bench {

/// A client of a parameter server with a small variable, a large one with Adam's slots, and many small ones.
template <class Transport>
class ServerVariables {
 public:
  /// `first` is the number of its first shard. Clients of one server need disjoint numbers.
  explicit ServerVariables(const dist::net::Endpoint& endpoint,
                           std::optional<dist::server::SharedMemoryAccess> shared_memory = {},
                           dist::server::ShardId first = 1)
      : small_shard(first),
        large_shard(first + 1),
        first_of_many(first + 2),
        client_(0, endpoint, {.wait_for_server = std::chrono::seconds{20}, .shared_memory = shared_memory}),
        values_(large, 1e-3f) {
    client_.greet();
    client_.create({small_shard, "small", small, 1, 0}, 0.0f);
    client_.create({large_shard, "large", large, 1, 0}, 0.0f);
    client_.ensure_slots(large_shard, 0, {0, 0});
    for (std::size_t i = 0; i < many; ++i) client_.create({first_of_many + i, "one of many", small, 1, 0}, 0.0f);
  }

  /// Returns the operations, with repetitions per round for transports that send messages.
  [[nodiscard]] std::vector<Row> rows(const std::string& transport) {
    const auto row = [&](const std::string& what, int repetitions, void (ServerVariables::*work)()) {
      return Row{what + ", " + transport, repetitions, [this, work] { (this->*work)(); }};
    };
    return {row("push of 64 B", 200, &ServerVariables::push_small),
            row("push of 11 MB, SGD", 5, &ServerVariables::push_sgd),
            row("push of 11 MB, Adam", 5, &ServerVariables::push_adam),
            row("pull of 11 MB", 5, &ServerVariables::pull),
            row("push to 100 shards one by one", 5, &ServerVariables::push_many_alone),
            row("push to 100 shards together", 50, &ServerVariables::push_many),
            row("pull of 100 shards one by one", 5, &ServerVariables::pull_many_alone),
            row("pull of 100 shards together", 50, &ServerVariables::pull_many),
            row("pull of 100 shards, none changed", 50, &ServerVariables::pull_many_unchanged)};
  }

 private:
  // 64 bytes, and the parameters of the guide's CNN.
  static constexpr std::size_t small = 16, large = 2'770'634, many = 100;
  const dist::server::ShardId small_shard, large_shard, first_of_many;
  static constexpr dist::nn::SGD::Plain<float> sgd{1e-4f};
  static constexpr dist::nn::Adam::Update<float, false> adam{1e-4f, 0.1f, 0.001f, 1e-7f};

  void push_small() { client_.push(small_shard, sgd, std::span<const float>{values_}.first(small)); }
  void push_sgd() { client_.push(large_shard, sgd, std::span<const float>{values_}); }
  void push_adam() { client_.push(large_shard, adam, std::span<const float>{values_}); }
  void pull() { client_.pull(large_shard, std::span{values_}); }

  void push_many_alone() {
    for (std::size_t i = 0; i < many; ++i) client_.push(first_of_many + i, sgd, part(i));
  }
  void push_many() {
    dist::server::PushRequest request;
    for (std::size_t i = 0; i < many; ++i) request.dense(first_of_many + i, sgd, part(i));
    client_.push(request);
  }
  void pull_many_alone() {
    for (std::size_t i = 0; i < many; ++i) client_.pull(first_of_many + i, part(i));
  }
  void pull_many() { pull_many_since(dist::server::unknown_version); }
  void pull_many_unchanged() { pull_many_since(version_); }
  void pull_many_since(std::uint64_t known) {
    dist::server::PullRequest request;
    for (std::size_t i = 0; i < many; ++i) request.dense(first_of_many + i, part(i), {.known = known});
    version_ = client_.pull(request).front();
  }
  [[nodiscard]] std::span<float> part(std::size_t i) { return std::span{values_}.subspan(i * small, small); }

  dist::server::Client<Transport> client_;
  std::vector<float> values_;
  std::uint64_t version_ = dist::server::unknown_version;  ///< of the many small variables, which are pushed together
};

/// Merges the rows of several transports, so that rows with the same work are adjacent.
[[nodiscard]] inline std::vector<Row> side_by_side(const std::vector<std::vector<Row>>& of_transports) {
  std::vector<Row> all;
  for (std::size_t work = 0; work < of_transports.front().size(); ++work)
    for (const std::vector<Row>& rows : of_transports) all.push_back(rows[work]);
  return all;
}

}  // namespace bench
