#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

namespace detail {

/// Stores updates of different types in a few blocks of memory. They are trivially copyable, so none is destroyed.
class UpdateArena {
 public:
  template <class T, class F>
  [[nodiscard]] const TypedUpdate<F, T>* make(const F& function) {
    using Update = TypedUpdate<F, T>;
    constexpr std::size_t alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    static_assert(alignof(Update) <= alignment);
    constexpr std::size_t size = (sizeof(Update) + alignment - 1) / alignment * alignment;
    return ::new (static_cast<void*>(take(size))) Update{function};
  }

 private:
  [[nodiscard, gnu::noinline]] std::byte* take(std::size_t size) {
    if (left_ < size) {
      const std::size_t bytes = std::max(size, blocks_.empty() ? size : std::size_t{4096});
      blocks_.push_back(std::make_unique<std::byte[]>(bytes));
      next_ = blocks_.back().get();
      left_ = bytes;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace detail

/// The pushes of one step to several shards of one server, as one message. Arguments must stay valid and unchanged
/// until the push is done. The transport splits messages of up to `rpc::ServerOptions::longest`, 1 TiB, and the server
/// applies only complete ones.
class PushRequest {
 public:
  using Part = detail::PushPart;
  using Result = Pushed;
  static constexpr Result of_nothing{};  ///< of a part without elements

  /// Updates all elements of a shard by `update(element, value)`, or applies an optimizer's functor (ServerUpdate).
  /// `dense`, `uniform` and `rows` throw InvalidArgument if `options` has a staleness limit without a version.
  template <class E, std::size_t extent, class F>
  PushRequest& dense(ShardId shard, const F& update, std::span<E, extent> values, const PushOptions& options = {}) {
    return put<std::remove_const_t<E>>(
        {shard, detail::PushEncoding::dense, options, nullptr, {}, detail::ValueBytes{std::as_bytes(values)}}, update);
  }
  /// Updates all elements with the same value, which is copied and sent once.
  template <class T, class F>
  PushRequest& uniform(ShardId shard, const F& update, T value, const PushOptions& options = {}) {
    return put<T>({shard,
                   detail::PushEncoding::uniform,
                   options,
                   nullptr,
                   {},
                   detail::ValueBytes::copy_of(std::as_bytes(std::span{&value, 1}))},
                  update);
  }
  /// Updates the given rows, with one row of values for each index. Throws ShapeMismatch if the values are not whole
  /// rows.
  template <class E, std::size_t extent, class F>
  PushRequest& rows(ShardId shard, const F& update, std::span<const std::int64_t> indices, std::span<E, extent> values,
                    DuplicateRows repeats, const PushOptions& options = {}) {
    detail::require_whole_rows(shard, indices.size(), values.size());
    return put<std::remove_const_t<E>>(
        {shard,
         repeats == DuplicateRows::summed ? detail::PushEncoding::rows_summed : detail::PushEncoding::rows_in_order,
         options, nullptr, indices, detail::ValueBytes{std::as_bytes(values)}},
        update);
  }
  /// Adds a part. `put` also sets its update, of elements of type `T`.
  [[gnu::noinline]] detail::PushPart& add(const detail::PushPart& part) {
    detail::require_version_of_bound(part.shard, part.options);
    return parts_.emplace_back(part);
  }
  template <class T, class F>
  PushRequest& put(const detail::PushPart& part, const F& update) {
    if constexpr (detail::require_server_update<F, T>()) add(part).update = updates_.make<T>(update);
    return *this;
  }
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  [[nodiscard]] std::span<const detail::PushPart> parts() const noexcept { return parts_; }

 private:
  std::vector<detail::PushPart> parts_;
  detail::UpdateArena updates_;
};

/// The pulls of one step from several shards of one server. Destinations and indices must stay valid until the pull is
/// done. The transport splits replies of up to `rpc::ChannelOptions::longest`, 1 TiB.
///
/// A shard at the known version is not sent, and `to` stays unchanged. After a failed pull, `to` may hold elements of
/// several versions.
class PullRequest {
 public:
  using Part = detail::PullPart;
  using Result = std::uint64_t;
  static constexpr Result of_nothing = unknown_version;

  /// Pulls a shard, or one of its slots.
  template <class T, std::size_t extent>
  PullRequest& dense(ShardId shard, std::span<T, extent> to, const PullOptions& options = {}) {
    return dense(shard, io::element_type<T>, std::as_writable_bytes(to), options);
  }
  PullRequest& dense(ShardId shard, io::ElementType type, std::span<std::byte> to, const PullOptions& options = {}) {
    parts_.push_back({shard, type, options, true, {}, to});
    return *this;
  }
  /// Pulls rows in the order of the indices. Throws ShapeMismatch if `to` does not fit whole rows.
  template <class T, std::size_t extent>
  PullRequest& rows(ShardId shard, std::span<const std::int64_t> indices, std::span<T, extent> to,
                    const PullOptions& options = {}) {
    detail::require_whole_rows(shard, indices.size(), to.size());
    parts_.push_back({shard, io::element_type<T>, options, false, indices, std::as_writable_bytes(to)});
    return *this;
  }
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  [[nodiscard]] std::span<const detail::PullPart> parts() const noexcept { return parts_; }

 private:
  std::vector<detail::PullPart> parts_;
};

}  // namespace dist::server
