/// What a client sends to a parameter server and what comes back, in archives; elements and the indices of rows lie behind
/// what says how many there are, as in memory, so that they are sent from where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/short_list.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

/// The version of a shard from which a gradient was computed, or that somebody has, where nobody knows.
inline constexpr std::uint64_t unknown_version = ~std::uint64_t{0};

/// A push is applied however stale it is.
inline constexpr std::uint64_t any_staleness = ~std::uint64_t{0};

/// What is said about a pull besides where its values go.
struct PullOptions {
  std::uint64_t known =
      unknown_version;      ///< of the shard, whose values are there already: they come if it has changed since
  std::uint32_t array = 0;  ///< 0 are the weights, then come the slots
};

/// What is said about a push besides its values.
///
/// The staleness of a push is how many pushes the shard has taken since `version`. One of more than `max_staleness` is refused:
/// the shard stays as it is, and `Pushed::applied` tells who pushes, who pulls again then (ServerVariable::refresh), computes
/// from what has come, and pushes that. Each shard decides for itself, so of a gradient for several shards some may take their
/// part while others refuse it. The bound holds exactly: it is compared under the lock under which the push is applied.
struct PushOptions {
  std::uint64_t version = unknown_version;      ///< of the shard when what the values come from was pulled
  std::uint32_t first_slot = 0;                 ///< of those that the update uses
  std::uint64_t max_staleness = any_staleness;  ///< 0: nobody else may have pushed since
};

/// What a push of one shard comes to.
struct Pushed {
  std::uint64_t version = 0;    ///< of the shard after it
  std::uint64_t staleness = 0;  ///< pushes of others in between, if the push has said from which version it comes
  bool applied = true;          ///< false where it was more stale than it may be
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

/// One value for each element, one for all of them, or a row of values for each index.
enum class Form : std::uint8_t { dense, uniform, rows_in_order, rows_summed };

/// Before what is pushed to one shard: then the update, the indices of the rows and the values.
struct PushHead {
  ShardId shard = 0;
  Form form = Form::dense;
  std::uint64_t rows = 0;   ///< 0 in dense and uniform form
  std::uint64_t bytes = 0;  ///< of the values
  PushOptions options;
};

/// Before what is pulled of one shard: then the indices of the rows.
struct PullHead {
  ShardId shard = 0;
  io::ElementType type = io::ElementType::f32;
  bool all = true;
  std::uint64_t rows = 0;  ///< 0 for all
  PullOptions options;
};

/// What is said before the elements of a pull, of each shard.
struct PullSeen {
  std::uint64_t version = 0;  ///< of the shard when it was copied
  std::uint64_t bytes = 0;    ///< of its elements; none where the version is the one that was known
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
  void lend(rpc::Piece piece);
  /// Pieces that are valid as long as this stays where it is and nothing else is put.
  [[nodiscard]] rpc::PieceList pieces() const;

 private:
  struct Lent {
    std::size_t at = 0;  ///< behind so many bytes of the archive
    rpc::Piece piece;
  };

  ArchiveWriter archive_;
  dist::detail::ShortList<Lent, 2> lent_;
};

/// Refuses, by the shard's number, rows of values that are not as many as the indices.
void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values);

}  // namespace detail

/// What one step sends to one server, for several of its shards: one message, so one journey. What it is given is lent: it
/// stays, unchanged, until the push is done. The message is of any size up to what `rpc::ServerOptions::longest` allows, which
/// is 1 TiB: the transport cuts it where it must, and nothing is applied before all of it is there.
class PushRequest {
 public:
  /// What becomes of each shard.
  using Result = Pushed;

  /// All elements of a shard become `update(element, value)`, or an optimizer's functor is applied to them (ServerUpdate).
  template <class E, std::size_t extent, class F>
  PushRequest& dense(ShardId shard, const F& update, std::span<E, extent> values, const PushOptions& options = {}) {
    using T = std::remove_const_t<E>;
    if constexpr (detail::require_server_update<F, T>())
      put<T>({shard, detail::Form::dense, 0, values.size_bytes(), options}, update, {}, values);
    return *this;
  }
  /// The same with one value for all elements, which is all that is sent, and is copied.
  template <class T, class F>
  PushRequest& uniform(ShardId shard, const F& update, T value, const PushOptions& options = {}) {
    if constexpr (detail::require_server_update<F, T>()) {
      put<T>({shard, detail::Form::uniform, 0, sizeof value, options}, update, {}, {});
      message_.archive().put_bytes(&value, sizeof value);
    }
    return *this;
  }
  /// Those of some rows, with one row of values for each index. Throws ShapeMismatch where the values are no whole rows, and, as
  /// all do, InvalidArgument for a bound on the staleness without a version.
  template <class E, std::size_t extent, class F>
  PushRequest& rows(ShardId shard, const F& update, std::span<const std::int64_t> indices, std::span<E, extent> values,
                    Repeats repeats, const PushOptions& options = {}) {
    using T = std::remove_const_t<E>;
    detail::require_whole_rows(shard, indices.size(), values.size());
    if constexpr (detail::require_server_update<F, T>())
      put<T>({shard, repeats == Repeats::summed ? detail::Form::rows_summed : detail::Form::rows_in_order,
              indices.size(), values.size_bytes(), options},
             update, indices, values);
    return *this;
  }
  /// For how many shards it is.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// As long as it stays where it is, and nothing is added.
  [[nodiscard]] rpc::PieceList pieces() const { return message_.pieces(); }

 private:
  template <class T, class F>
  void put(const detail::PushHead& head, const F& update, std::span<const std::int64_t> indices,
           std::span<const T> values) {
    if (head.options.version == unknown_version && head.options.max_staleness != any_staleness)
      throw InvalidArgument(text("A push to shard ", head.shard, " cannot be refused for its staleness"),
                            "it does not say from which version it comes",
                            "Give the version that was pulled, or no bound");
    message_.archive().put(head);
    detail::put_update<T>(message_.archive(), update);
    message_.lend(std::as_bytes(indices));
    message_.lend(std::as_bytes(values));
    ++size_;
  }

  detail::Message message_;
  std::size_t size_ = 0;
};

/// What one step wants of one server, of several of its shards, and where it goes. The indices are lent, too. Replies are of any
/// size up to what `rpc::ChannelOptions::longest` allows, which is 1 TiB: the transport cuts them where it must.
///
/// Of a shard that has the version that the caller knows nothing is sent but that, and what `to` holds stays. After a pull that has
/// failed, `to` may hold elements of several versions.
class PullRequest {
 public:
  /// The version of each shard.
  using Result = std::uint64_t;

  /// The elements of a shard, or of one of its slots.
  template <class T, std::size_t extent>
  PullRequest& dense(ShardId shard, std::span<T, extent> to, const PullOptions& options = {}) {
    return put<T>({shard, io::element_type<T>, true, 0, options}, {}, to);
  }
  /// Those of some rows, in the order of the indices. Throws ShapeMismatch where there is no room for whole rows.
  template <class T, std::size_t extent>
  PullRequest& rows(ShardId shard, std::span<const std::int64_t> indices, std::span<T, extent> to,
                    const PullOptions& options = {}) {
    detail::require_whole_rows(shard, indices.size(), to.size());
    return put<T>({shard, io::element_type<T>, false, indices.size(), options}, indices, to);
  }
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  /// As long as it stays where it is, and nothing is added.
  [[nodiscard]] rpc::PieceList pieces() const { return message_.pieces(); }

  /// Where the elements of shard `number` of the request go.
  [[nodiscard]] std::span<std::byte> room(std::size_t number) const { return parts_[number].to; }
  /// Throws StoreError unless that is as large as these elements.
  void require_room(std::size_t number, std::uint64_t bytes) const;
  /// Where the elements of shard `number` go that the server has sent: nowhere if it has sent none, because the version is known.
  /// Throws StoreError where there is no room for them.
  [[nodiscard]] std::span<std::byte> room_for(std::size_t number, const detail::PullSeen& seen) const;

 private:
  struct Part {
    ShardId shard = 0;
    std::uint64_t known = unknown_version;
    std::span<std::byte> to;
  };

  template <class T>
  PullRequest& put(const detail::PullHead& head, std::span<const std::int64_t> indices, std::span<T> to) {
    message_.archive().put(head);
    message_.lend(std::as_bytes(indices));
    parts_.push_back({head.shard, head.options.known, std::as_writable_bytes(to)});
    return *this;
  }

  detail::Message message_;
  std::vector<Part> parts_;
};

namespace detail {

/// The reply to a pull while it comes: what stands before the elements, and the elements, which go where the request says.
class PullReply final : public rpc::ReplySink {
 public:
  /// The request and what it names are lent.
  explicit PullReply(const PullRequest& request);
  void take(rpc::Piece bytes) noexcept override;

  /// What stands before the elements, or why there are none.
  [[nodiscard]] rpc::Piece head() const noexcept { return head_; }
  /// When the reply is whole, behind what all replies begin with: the version of each shard. Throws StoreError where its elements
  /// had no room, and ArchiveError for the reply to another request.
  [[nodiscard]] std::vector<std::uint64_t> versions(ArchiveReader& head) const;

 private:
  /// Reads the head, which is whole.
  void find_rooms();

  const PullRequest& request_;
  const std::size_t head_size_;
  std::vector<std::byte> head_;
  std::vector<std::span<std::byte>> rooms_;  ///< in their order, what is left of each
  std::size_t at_ = 0;
  std::uint64_t surplus_ = 0;  ///< bytes behind the elements
  std::exception_ptr failure_;
};

}  // namespace detail

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/requests.ipp>
#endif
