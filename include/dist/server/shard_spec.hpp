/// What clients and parameter servers say of a shard.
#pragma once

#include <cstdint>
#include <string>

#include <dist/core/config.hpp>
#include <dist/io/element_type.hpp>

/// Variables that lie on parameter servers, and what their clients ask of them.
namespace dist::server {

/// The number of a shard, which whoever creates it chooses, among those of one server. Where another shard had it before, versions
/// that were said of that one mean nothing, so random numbers are best.
using ShardId = std::uint64_t;

/// The contiguous rows of a variable that one server holds.
struct ShardSpec {
  ShardId id = 0;
  std::string name;            ///< for messages: "embedding/part_1"
  std::uint64_t rows = 1;      ///< 1 for a scalar
  std::uint64_t row_size = 1;  ///< elements of a row
  std::uint64_t offset = 0;    ///< elements of the variable that come before the shard's first
};

/// What a server holds, for messages and for who takes it over.
struct ShardInfo {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  std::uint64_t slots = 0;
  std::uint64_t version = 0;
};

/// Where a shard is.
struct ShardAddress {
  std::uint64_t server = 0;       ///< its number among the parameter servers
  std::uint64_t incarnation = 0;  ///< of that server, see Client
  ShardId id = 0;
  std::string name = {};  ///< as in ShardSpec
};

/// "Shard 'embedding/part_1' (number 7)"
[[nodiscard]] std::string to_string(const ShardSpec& spec);

/// How many pushes a shard lay ahead of the values from which a gradient was computed, over all pushes that have said
/// from which, and were applied.
struct Staleness {
  std::uint64_t pushes = 0;
  std::uint64_t sum = 0;
  std::uint64_t max = 0;
  std::uint64_t refused = 0;  ///< pushes that were more stale than their PushOptions::max_staleness

  [[nodiscard]] double mean() const noexcept {
    return pushes == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(pushes);
  }
  void add(const Staleness& others) noexcept {
    pushes += others.pushes;
    sum += others.sum;
    max = std::max(max, others.max);
    refused += others.refused;
  }
  void count(std::uint64_t of_push) noexcept {
    ++pushes;
    sum += of_push;
    max = std::max(max, of_push);
  }
  friend bool operator==(const Staleness&, const Staleness&) = default;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard_spec.ipp>
#endif
