#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/pointers.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/buffer_pool.hpp>
#include <dist/server/error.hpp>
#include <dist/server/store_place.hpp>

namespace dist::server {

class Callers;
class ShardTable;

/// The shards of a parameter server, and what is done for requests to it: each function takes the bytes of one and returns
/// those of the reply. Thread-safe. A request is checked before it changes anything, and then throws StoreError or ArchiveError.
///
/// What changes something is done once: a client numbers such requests, so that one that is sent again after its reply was
/// lost is answered and not done again, as long as the client lives.
class Store {
 public:
  /// Throws OutOfMemory.
  explicit Store(Reach reach = Reach::process);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  /// A number that a store of another process does not have, which is how clients see that theirs has gone.
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }

  /// The elements that a pull has seen, under each shard's lock, in memory of the pool.
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
  /// For clients that may reach the store's memory (NearStore): where it lies.
  std::vector<std::byte> place(ArchiveReader& request) const;
  /// And where a shard lies in it.
  std::vector<std::byte> find(ArchiveReader& request) const;

 private:
  /// The beginning of every reply: there is no problem, and which store it is.
  [[nodiscard]] ArchiveWriter reply() const;

  const std::uint64_t incarnation_;
  const std::shared_ptr<BufferPool> pool_;
  const std::shared_ptr<ShardTable> shards_;
  const std::unique_ptr<Callers> callers_;
};

namespace detail {

/// The reply to a request that was refused.
[[nodiscard]] std::vector<std::byte> refusal(const StoreError& error);
[[nodiscard]] std::vector<std::byte> refusal(const ArchiveError& error);
/// Calls `answer`, and replies what it throws of our errors.
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

/// The methods of a server that has these variables, which must outlive it.
template <class Exchange>
[[nodiscard]] std::vector<rpc::Method<Exchange>> store_methods(Store& store) {
  const auto method = [&store](const char* name, auto function) {
    return rpc::Method<Exchange>{name, [&store, function](Exchange& exchange) {
                                   detail::answer_or_refuse(exchange, [&](ArchiveReader& request) {
                                     exchange.reply((store.*function)(request));
                                   });
                                 }};
  };
  std::vector<rpc::Method<Exchange>> methods{
      method("store.greet", &Store::greet),        method("store.create", &Store::create),
      method("store.slots", &Store::ensure_slots), method("store.drop", &Store::drop),
      method("store.list", &Store::list),          method("store.staleness", &Store::staleness),
      method("store.push", &Store::push),          method("store.place", &Store::place),
      method("store.find", &Store::find)};
  methods.push_back(
      {"store.pull", [&store](Exchange& exchange) {
         detail::answer_or_refuse(exchange, [&](ArchiveReader& request) {
           auto snapshot = std::make_shared<Store::Snapshot>(store.pull(request));
           const rpc::Piece pieces[] = {snapshot->head, rpc::Piece{snapshot->buffer.data(), snapshot->size}};
           exchange.reply(pieces, [snapshot] { snapshot->pool->give_back(std::move(snapshot->buffer)); });
         });
       }});
  return methods;
}

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/store.ipp>
#endif
