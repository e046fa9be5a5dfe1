/// What a client sends to a parameter server and what comes back, in archives; elements and the indices of rows lie behind
/// what says how many there are, as in memory, so that they are sent from where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/rpc.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

/// The version of a shard from which a gradient was computed, where nobody knows.
inline constexpr std::uint64_t unknown_version = ~std::uint64_t{0};

/// What is said about a push besides its values.
struct PushOptions {
  std::uint64_t version = unknown_version;  ///< of the shard when what the values come from was pulled
  std::uint32_t first_slot = 0;             ///< of those that the update uses
};

/// What a push of one shard comes to.
struct Pushed {
  std::uint64_t version = 0;    ///< of the shard after it
  std::uint64_t staleness = 0;  ///< pushes of others in between, if the push has said from which version it comes
  friend bool operator==(const Pushed&, const Pushed&) = default;
};

/// What a server holds, for messages and for who takes it over.
struct ShardInfo {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  std::uint64_t slots = 0;
  std::uint64_t version = 0;
};

namespace detail {

/// Before every request but the greeting.
struct Envelope {
  std::uint64_t store = 0;    ///< the incarnation of the server's variables
  std::uint64_t client = 0;   ///< of who sends it, a random number
  std::uint64_t ordinal = 0;  ///< of what it changes, from 1; 0 where it changes nothing
};

enum class Form : std::uint8_t { dense, rows_in_order, rows_summed };

/// Before what is pushed to one shard: then the update, the indices of the rows and the values.
struct PushHead {
  ShardId shard = 0;
  Form form = Form::dense;
  std::uint64_t rows = 0;   ///< 0 in dense form
  std::uint64_t bytes = 0;  ///< of the values
  PushOptions options;
};

/// Before what is pulled of one shard: then the indices of the rows.
struct PullHead {
  ShardId shard = 0;
  std::uint32_t array = 0;  ///< 0 are the weights, then come the slots
  io::ElementType type = io::ElementType::f32;
  bool all = true;
  std::uint64_t rows = 0;  ///< 0 for all
};

enum class Initial : std::uint8_t { value, elements, function };

/// Before the initial values of a shard: an element, all elements, or the number of a function and its functor.
struct CreateHead {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  Initial initial = Initial::value;
  std::uint64_t bytes = 0;  ///< of the values
};

/// Bytes, and between them memory of others.
class Message {
 public:
  [[nodiscard]] ArchiveWriter& archive() { return archive_; }
  void lend(rpc::Piece piece) {
    if (!piece.empty()) lent_.emplace_back(archive_.content().size(), piece);
  }
  /// Pieces that are valid as long as nothing else is put.
  [[nodiscard]] std::vector<rpc::Piece> pieces() const {
    std::vector<rpc::Piece> all;
    all.reserve(2 * lent_.size() + 1);
    std::size_t begin = 0;
    const rpc::Piece own = archive_.content();
    for (const auto& [at, piece] : lent_) {
      if (at > begin) all.push_back(own.subspan(begin, at - begin));
      all.push_back(piece);
      begin = at;
    }
    if (begin < own.size()) all.push_back(own.subspan(begin));
    return all;
  }

 private:
  ArchiveWriter archive_;
  std::vector<std::pair<std::size_t, rpc::Piece>> lent_;  ///< behind so many bytes of the archive
};

/// Refuses, by the shard's number, rows of values that are not as many as the indices.
inline void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values) {
  if (rows == 0 ? values != 0 : values % rows != 0)
    throw ShapeMismatch(text("Rows for shard ", shard, " do not fit together"),
                        text(rows, " indices and ", values, " values"), "Give one row of values for each index");
}

}  // namespace detail

/// What one step sends to one server, for several of its shards: one message, so one journey. What it is given is lent: it
/// stays, unchanged, until the push is done.
class PushRequest {
 public:
  /// All elements of a shard become `update(element, value)`, or an optimizer's functor is applied to them (ServerUpdate).
  template <class T, class F>
  PushRequest& dense(ShardId shard, const F& update, std::span<const T> values, const PushOptions& options = {}) {
    if constexpr (detail::require_server_update<F, T>())
      put<T>({shard, detail::Form::dense, 0, values.size_bytes(), options}, update, {}, values);
    return *this;
  }
  /// Those of some rows, with one row of values for each index. Throws ShapeMismatch where the values are no whole rows.
  template <class T, class F>
  PushRequest& rows(ShardId shard, const F& update, std::span<const std::int64_t> indices, std::span<const T> values,
                    Repeats repeats, const PushOptions& options = {}) {
    detail::require_whole_rows(shard, indices.size(), values.size());
    if constexpr (detail::require_server_update<F, T>())
      put<T>({shard, repeats == Repeats::summed ? detail::Form::rows_summed : detail::Form::rows_in_order,
              indices.size(), values.size_bytes(), options},
             update, indices, values);
    return *this;
  }
  /// For how many shards it is.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::vector<rpc::Piece> pieces() const { return message_.pieces(); }

 private:
  template <class T, class F>
  void put(const detail::PushHead& head, const F& update, std::span<const std::int64_t> indices,
           std::span<const T> values) {
    message_.archive().put(head);
    detail::put_update<T>(message_.archive(), update);
    message_.lend(std::as_bytes(indices));
    message_.lend(std::as_bytes(values));
    ++size_;
  }

  detail::Message message_;
  std::size_t size_ = 0;
};

/// What one step wants of one server, of several of its shards, and where it goes. The indices are lent, too.
class PullRequest {
 public:
  /// The elements of a shard, or of its slot number `array - 1`.
  template <class T>
  PullRequest& dense(ShardId shard, std::span<T> to, std::uint32_t array = 0) {
    return put<T>({shard, array, io::element_type<T>, true, 0}, {}, to);
  }
  /// Those of some rows, in the order of the indices. Throws ShapeMismatch where there is no room for whole rows.
  template <class T>
  PullRequest& rows(ShardId shard, std::span<const std::int64_t> indices, std::span<T> to, std::uint32_t array = 0) {
    detail::require_whole_rows(shard, indices.size(), to.size());
    return put<T>({shard, array, io::element_type<T>, false, indices.size()}, indices, to);
  }
  [[nodiscard]] std::size_t size() const noexcept { return to_.size(); }
  [[nodiscard]] std::vector<rpc::Piece> pieces() const { return message_.pieces(); }

  /// The part of the reply that is for shard `part` of the request, which says how many bytes it has. Throws StoreError
  /// where these do not fit.
  void take(std::size_t part, std::uint64_t bytes, ArchiveReader& reply) const {
    if (bytes != to_[part].size())
      throw StoreError(Problem::wrong_size, text("A pull of shard ", shards_[part], " has no room for its elements"),
                       text("they are ", bytes, " bytes, there is room for ", to_[part].size()),
                       "Give memory of the size of the shard");
    reply.get_bytes(to_[part]);
  }

 private:
  template <class T>
  PullRequest& put(const detail::PullHead& head, std::span<const std::int64_t> indices, std::span<T> to) {
    message_.archive().put(head);
    message_.lend(std::as_bytes(indices));
    shards_.push_back(head.shard);
    to_.push_back(std::as_writable_bytes(to));
    return *this;
  }

  detail::Message message_;
  std::vector<ShardId> shards_;
  std::vector<std::span<std::byte>> to_;
};

}  // namespace dist::server
