#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// Reuses the memory of snapshots, so that a step neither allocates nor clears pages. Thread-safe.
class BufferPool {
 public:
  using Buffer = AlignedBuffer<std::byte>;

  /// Returns uninitialized memory of at least `bytes`.
  [[nodiscard]] Buffer take(std::size_t bytes) {
    {
      const std::lock_guard lock{mutex_};
      const auto fits = [&](const Buffer& buffer) { return buffer.size() >= bytes; };
      // The smallest that is large enough, because they are sorted.
      const auto found = std::find_if(free_.begin(), free_.end(), fits);
      if (found != free_.end() && found->size() / 2 <= bytes) {
        Buffer buffer = std::move(*found);
        free_.erase(found);
        return buffer;
      }
    }
    return Buffer(bytes);
  }
  /// Keeps the memory for reuse. Beyond `most_kept` buffers, the smallest is freed.
  void give_back(Buffer buffer) {
    const std::lock_guard lock{mutex_};
    const auto larger = [&](const Buffer& other) { return other.size() >= buffer.size(); };
    free_.insert(std::find_if(free_.begin(), free_.end(), larger), std::move(buffer));
    if (free_.size() > most_kept) free_.erase(free_.begin());
  }

  static constexpr std::size_t most_kept = 16;

 private:
  std::mutex mutex_;
  std::vector<Buffer> free_;  ///< sorted by size
};

class DuplicateFilter;
class ShardTable;

/// The shards of a parameter server, and the handlers of its requests, which return the bytes of the reply. An invalid
/// request throws StoreError or ArchiveError and changes nothing. Thread-safe.
///
/// Clients number changes, so that a repetition gets a reply, but is not applied again.
class ShardServer {
 public:
  /// Throws OutOfMemory.
  explicit ShardServer(Reach reach = Reach::process);
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;
  ~ShardServer();

  /// A random number, with which clients detect a restart.
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }

  /// The elements of a pull, copied under each shard's lock to memory of the pool.
  struct Snapshot {
    std::vector<std::byte> head;
    BufferPool::Buffer buffer;
    std::size_t size = 0;
    std::shared_ptr<BufferPool> pool;
  };

  [[nodiscard]] std::vector<std::byte> greet(ArchiveReader& request) const;
  std::vector<std::byte> create(ArchiveReader& request);
  std::vector<std::byte> ensure_slots(ArchiveReader& request);
  std::vector<std::byte> drop(ArchiveReader& request);
  std::vector<std::byte> list(ArchiveReader& request) const;
  std::vector<std::byte> staleness(ArchiveReader& request) const;
  std::vector<std::byte> push(ArchiveReader& request);
  [[nodiscard]] Snapshot pull(ArchiveReader& request) const;
  /// Returns the location of the store's memory, for SharedMemoryClient.
  std::vector<std::byte> place(ArchiveReader& request) const;
  /// Returns the location of a shard in the store's memory.
  std::vector<std::byte> find(ArchiveReader& request) const;

 private:
  /// The beginning of a reply: success, and the incarnation.
  [[nodiscard]] ArchiveWriter reply() const;

  const std::uint64_t incarnation_;
  const std::shared_ptr<BufferPool> pool_;
  const std::shared_ptr<ShardTable> shards_;
  const std::unique_ptr<DuplicateFilter> callers_;
};

namespace detail {

[[nodiscard]] std::vector<std::byte> refusal(const StoreError& error);
[[nodiscard]] std::vector<std::byte> refusal(const ArchiveError& error);
/// Calls `answer`, and replies with its StoreError or ArchiveError.
template <class Exchange, class Answer>
void answer_or_refuse(Exchange& exchange, Answer&& answer) {
  std::vector<std::byte> refused;
  try {
    ArchiveReader request{exchange.pieces(), "A request"};
    return answer(request);
  } catch (const StoreError& error) {
    refused = refusal(error);
  } catch (const ArchiveError& error) {
    refused = refusal(error);
  }
  exchange.reply(std::move(refused));
}

}  // namespace detail

/// The RPC methods of a parameter server. `store` must outlive the server.
template <class Exchange>
[[nodiscard]] std::vector<rpc::Method<Exchange>> store_methods(ShardServer& store) {
  const auto method = [&store](const char* name, auto function) {
    return rpc::Method<Exchange>{name, [&store, function](Exchange& exchange) {
                                   detail::answer_or_refuse(exchange, [&](ArchiveReader& request) {
                                     exchange.reply((store.*function)(request));
                                   });
                                 }};
  };
  std::vector<rpc::Method<Exchange>> methods{
      method("store.greet", &ShardServer::greet),        method("store.create", &ShardServer::create),
      method("store.slots", &ShardServer::ensure_slots), method("store.drop", &ShardServer::drop),
      method("store.list", &ShardServer::list),          method("store.staleness", &ShardServer::staleness),
      method("store.push", &ShardServer::push),          method("store.place", &ShardServer::place),
      method("store.find", &ShardServer::find)};
  methods.push_back(
      {"store.pull", [&store](Exchange& exchange) {
         detail::answer_or_refuse(exchange, [&](ArchiveReader& request) {
           auto snapshot = std::make_shared<ShardServer::Snapshot>(store.pull(request));
           const rpc::Chunk pieces[] = {snapshot->head, rpc::Chunk{snapshot->buffer.data(), snapshot->size}};
           exchange.reply(pieces, [snapshot] { snapshot->pool->give_back(std::move(snapshot->buffer)); });
         });
       }});
  return methods;
}

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard_server.ipp>
#endif
