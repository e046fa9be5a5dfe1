#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/client.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_context.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/variable/given_value.hpp>

namespace dist {

namespace server {

/// Elements on their way from a server: a Future. `values()` are there when it is done, and `version()` says which values of
/// the shard they are, for a push that comes from them.
template <class Element, class T>
class ServerRead {
 public:
  /// `pull(elements)` adds what is wanted to a batch; nothing is asked for where there is room for nothing.
  template <class Pull>
  ServerRead(const Shape& shape, const Pull& pull) : values_(std::make_shared<Tensor<Element>>(shape)) {
    if (values_->size() == 0) return;
    part_.emplace(pull(values_->elements()));
    part_->keep(values_);
  }

  /// Throws what a part of a batch does.
  void wait() {
    if (part_) part_->wait();
  }
  [[nodiscard]] bool is_done() const { return !part_ || part_->is_done(); }
  [[nodiscard]] TensorView<const Element> values() const noexcept { return std::as_const(*values_).view(); }
  [[nodiscard]] std::uint64_t version() const { return part_ ? part_->result() : unknown_version; }

 private:
  std::shared_ptr<Tensor<Element>> values_;
  std::optional<typename Batch<T>::Pull> part_;
};

/// Values on their way to a server: a Future. `pushed()` says what became of them when it is done.
template <class T>
class ServerWrite {
 public:
  /// Of nothing.
  ServerWrite() = default;
  explicit ServerWrite(typename Batch<T>::Push part) : part_(std::move(part)) {}

  /// Throws what a part of a batch does.
  void wait() {
    if (part_) part_->wait();
  }
  [[nodiscard]] bool is_done() const { return !part_ || part_->is_done(); }
  [[nodiscard]] Pushed pushed() const { return part_ ? part_->result() : Pushed{}; }

 private:
  std::optional<typename Batch<T>::Push> part_;
};

}  // namespace server

/// A shard of a variable, or all of it, on a parameter server: which server that is, and what the shard is called there. It
/// has no connection of its own, so it travels to workers; every operation takes the context that has one. See
/// StartsOperations for these operations, and ServerVariable, which is made of shards.
template <class E, class T>
class ServerShard {
 public:
  using Element = E;
  using Transport = T;

  /// Where it is: an archive has this, and the shape.
  using Address = server::ShardAddress;

  ServerShard(Address place, Shape shape) : place_(std::move(place)), shape_(std::move(shape)) {}

  [[nodiscard]] const Address& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& name() const noexcept { return place_.name; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }

  /// In which operations are begun on several shards that are sent together, see StartsTogether.
  template <ServerContext<T> Context>
  [[nodiscard]] static server::Batch<T> together(const Context& context) {
    return server::Batch<T>{server::clients_of<T>(context)};
  }

  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_read(const Context& context) const {
    return start_read_slot(context, 0);
  }
  /// Array 0 are the values, then come the slots that optimizers keep beside them.
  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_read_slot(const Context& context, std::uint32_t array) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      return server::ServerRead<Element, T>{
          shape_, [&](std::span<Element> elements) { return batch.pull(place_, elements, {.array = array}); }};
    });
  }
  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_gather(const Context& context,
                                                            std::span<const std::int64_t> rows) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      return server::ServerRead<Element, T>{shape_.with_rows(rows.size()), [&](std::span<Element> elements) {
                                              return batch.pull_rows(place_, rows, elements);
                                            }};
    });
  }
  template <ServerContext<T> Context, class Value, class Update>
  [[nodiscard]] server::ServerWrite<T> start_write(const Context& context, const Value& value, Update update) {
    if constexpr (detail::is_same_value<Value>) {
      return start_write(context, value.value, update);
    } else if constexpr (std::same_as<Value, Element>) {
      return write_unless(shape_.elements() == 0, context,
                          [&](const server::Batch<T>& batch) { return batch.push_uniform(place_, update, value); });
    } else {
      return start_push(context, update, value, {});
    }
  }
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<T> start_scatter(const Context& context, IndexedSlicesView<Element> slices,
                                                     Update update) {
    return start_push_rows(context, update, slices, server::DuplicateRows::in_order, {});
  }

  /// Applies an optimizer's functor, or another update, to all elements with what `values` has for each.
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<T> start_push(const Context& context, const Update& update,
                                                  TensorView<const Element> values,
                                                  const server::PushOptions& options) {
    return write_unless(values.size() == 0, context, [&](const server::Batch<T>& batch) {
      return batch.push(place_, update, values.elements(), options);
    });
  }
  /// The same to the rows that `slices` names.
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<T> start_push_rows(const Context& context, const Update& update,
                                                       IndexedSlicesView<Element> slices, server::DuplicateRows repeats,
                                                       const server::PushOptions& options) {
    return write_unless(slices.rows() == 0, context, [&](const server::Batch<T>& batch) {
      return batch.push_rows(place_, update, slices.indices(), slices.values().elements(), repeats, options);
    });
  }

  /// The client of its server. Throws InvalidArgument in a context without such a server.
  template <ServerContext<T> Context>
  [[nodiscard]] std::shared_ptr<server::Client<T>> client(const Context& context) const {
    return server::clients_of<T>(context).of(static_cast<std::size_t>(place_.server), place_.incarnation);
  }

  void write_to(ArchiveWriter& archive) const { archive.put(place_).put(shape_); }
  [[nodiscard]] static ServerShard read_from(ArchiveReader& archive) {
    auto place = archive.get<Address>();
    return ServerShard{std::move(place), archive.get<Shape>()};
  }

 private:
  /// What `add(batch)` adds to a batch: to the one that the context is, or to one of its own, which is sent at once.
  template <class Context, class Add>
  [[nodiscard]] static auto begin(const Context& context, const Add& add) {
    if constexpr (std::same_as<Context, server::Batch<T>>) {
      return add(context);
    } else {
      const server::Batch<T> alone = together(context);
      auto begun = add(alone);
      alone.send();
      return begun;
    }
  }
  template <class Context, class Push>
  [[nodiscard]] static server::ServerWrite<T> write_unless(bool of_nothing, const Context& context, const Push& push) {
    if (of_nothing) return {};
    return begin(context, [&](const server::Batch<T>& batch) { return server::ServerWrite<T>{push(batch)}; });
  }

  Address place_;
  Shape shape_;
};

}  // namespace dist
