#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

namespace detail {

/// Throws InvalidArgument for a bound on the staleness of a push without a version.
void require_version_of_bound(ShardId shard, const PushOptions& options);

/// Updates of different types in few pieces of memory. They are trivially copyable functors, so none of them is destroyed.
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
  /// So many bytes of the memory.
  [[nodiscard]] std::byte* take(std::size_t size);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace detail

/// What one step sends to one server, for several of its shards: one message, so one journey. What it is given is lent: it
/// stays, unchanged, until the push is done. The message is of any size up to what `rpc::ServerOptions::longest` allows, which
/// is 1 TiB: the transport cuts it where it must, and nothing is applied before all of it is there.
class PushRequest {
 public:
  using Part = detail::PushPart;
  /// What becomes of each shard.
  using Result = Pushed;
  static constexpr Result of_nothing{};  ///< of a part without elements

  /// All elements of a shard become `update(element, value)`, or an optimizer's functor is applied to them (ServerUpdate).
  template <class E, std::size_t extent, class F>
  PushRequest& dense(ShardId shard, const F& update, std::span<E, extent> values, const PushOptions& options = {}) {
    return put<std::remove_const_t<E>>(
        {shard, detail::PushEncoding::dense, options, nullptr, {}, detail::ValueBytes{std::as_bytes(values)}}, update);
  }
  /// The same with one value for all elements, which is all that is sent, and is copied.
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
  /// Those of some rows, with one row of values for each index. Throws ShapeMismatch where the values are no whole rows, and, as
  /// all do, InvalidArgument for a bound on the staleness without a version.
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
  /// For how many shards it is.
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  [[nodiscard]] std::span<const detail::PushPart> parts() const noexcept { return parts_; }

 private:
  template <class T, class F>
  PushRequest& put(const detail::PushPart& part, const F& update) {
    if constexpr (detail::require_server_update<F, T>()) {
      detail::require_version_of_bound(part.shard, part.options);
      parts_.push_back(part);
      parts_.back().update = updates_.make<T>(update);
    }
    return *this;
  }

  std::vector<detail::PushPart> parts_;
  detail::UpdateArena updates_;
};

/// What one step wants of one server, of several of its shards, and where it goes. The indices are lent, too. Replies are of any
/// size up to what `rpc::ChannelOptions::longest` allows, which is 1 TiB: the transport cuts them where it must.
///
/// Of a shard that has the version that the caller knows nothing is sent but that, and what `to` holds stays. After a pull that has
/// failed, `to` may hold elements of several versions.
class PullRequest {
 public:
  using Part = detail::PullPart;
  /// The version of each shard.
  using Result = std::uint64_t;
  static constexpr Result of_nothing = unknown_version;

  /// The elements of a shard, or of one of its slots.
  template <class T, std::size_t extent>
  PullRequest& dense(ShardId shard, std::span<T, extent> to, const PullOptions& options = {}) {
    return dense(shard, io::element_type<T>, std::as_writable_bytes(to), options);
  }
  PullRequest& dense(ShardId shard, io::ElementType type, std::span<std::byte> to, const PullOptions& options = {}) {
    parts_.push_back({shard, type, options, true, {}, to});
    return *this;
  }
  /// Those of some rows, in the order of the indices. Throws ShapeMismatch where there is no room for whole rows.
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

#ifndef DIST_COMPILED
#include <dist/server/requests.ipp>
#endif
