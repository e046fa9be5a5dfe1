/// Descriptions of shards that clients and parameter servers exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <dist/core/algorithms.hpp>
#include <dist/core/short_list.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>

/// Parameter servers, which store variables, and their clients.
namespace dist::server {

/// The number of a shard on its server, chosen by its creator. Random numbers are best: versions of an earlier shard
/// with the same id would be invalid.
using ShardId = std::uint64_t;

/// The contiguous rows of a variable on one server.
struct ShardSpec {
  ShardId id = 0;
  std::string name;            ///< for messages: "embedding/part_1"
  std::uint64_t rows = 1;      ///< 1 for a scalar
  std::uint64_t row_size = 1;  ///< elements of a row
  std::uint64_t offset = 0;    ///< index of the shard's first element in the variable
};

/// A stored shard, for messages and for a coordinator that takes it over.
struct ShardInfo {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  std::uint64_t slots = 0;
  std::uint64_t version = 0;
};

/// The address of a shard.
struct ShardAddress {
  std::uint64_t server = 0;       ///< index among the parameter servers
  std::uint64_t incarnation = 0;  ///< of the server, see Client
  ShardId id = 0;
  std::string name = {};  ///< see ShardSpec
};

/// Returns "Shard 'embedding/part_1' (number 7)".
[[nodiscard]] inline std::string to_string(const ShardSpec& spec) {
  return concat("Shard ", quoted(spec.name), " (number ", spec.id, ")");
}

/// Statistics of applied pushes with a version: the staleness is the number of pushes between the pull of the values
/// and the push of the gradient computed from them.
struct Staleness {
  std::uint64_t pushes = 0;
  std::uint64_t sum = 0;
  std::uint64_t max = 0;
  std::uint64_t refused = 0;  ///< pushes staler than their PushOptions::max_staleness

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

/// The processes that can map the memory of a store.
enum class Reach : std::uint8_t {
  process,  ///< only its own process
  machine,  ///< all processes of this user on this machine
};

/// The use of a server's memory by clients on its machine.
enum class SharedMemoryAccess : std::uint8_t {
  none,  ///< all pushes and pulls are messages
  read,  ///< pulls without locks: a client that crashes or stops blocks no one
  write,  ///< also pushes, with locks: a client that crashes may make a shard unusable, so all processes should fail together
};

/// Options for workers, sent by their coordinator.
struct WorkerOptions {
  SharedMemoryAccess shared_memory = SharedMemoryAccess::read;
  std::uint64_t bucket_bytes = 0;                   ///< see ParameterServerOptions
  std::uint64_t max_staleness = ~std::uint64_t{0};  ///< see ParameterServerOptions
};

/// The location of a store's memory.
struct StoreMemoryHandle {
  std::uint64_t process_space = 0;  ///< of the store's process (dist::process_space)
  std::int32_t process = 0;         ///< process id
  std::int32_t descriptor = -1;     ///< file descriptor of the mappable memory in that process; -1: none
  std::uint64_t bytes = 0;          ///< size of the mappable memory
};

/// The location of a shard in its store's memory.
struct SharedShard {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  std::uint64_t state = 0;   ///< offset of its ShardState
  std::uint64_t serial = 0;  ///< of the ShardState as long as the shard exists
};

/// The arrays of a locked shard: its elements, and its slots.
struct ShardMemory {
  io::ElementType type = io::ElementType::f32;
  std::size_t elements = 0;
  std::size_t row_size = 1;
  std::byte* weights = nullptr;
  dist::detail::ShortList<std::byte*, 4> slots = {};

  /// Returns the weights. Throws StoreError if their type is not `T`.
  template <class T>
  [[nodiscard]] std::span<T> weights_as() const {
    if (type != io::element_type<T>)
      throw StoreError(Problem::wrong_type, concat("An update for ", dtype_name<T>, " does not fit a shard"),
                       concat("its elements are ", io::to_string(type)), "Give values of the variable's element type");
    return {reinterpret_cast<T*>(weights), elements};
  }
};

}  // namespace dist::server
