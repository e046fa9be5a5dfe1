#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/client.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/server_context.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/variable/given_value.hpp>

namespace dist {

namespace server {

/// A part of a pull, and the elements that it brings: a Future. `values()` are there when it is done, and `result()` is their
/// version.
template <class Element, class T>
class ServerRead : public Batch<T>::Pull {
 public:
  ServerRead(typename Batch<T>::Pull part, std::shared_ptr<Tensor<Element>> values)
      : Batch<T>::Pull(std::move(part)), values_(std::move(values)) {
    this->keep(values_);
  }

  [[nodiscard]] TensorView<const Element> values() const noexcept { return std::as_const(*values_).view(); }

 private:
  std::shared_ptr<Tensor<Element>> values_;
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
  using Read = server::ServerRead<E, T>;
  using Write = typename server::Batch<T>::Push;

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

  /// Array 0 are the values, then come the slots that optimizers keep beside them.
  template <ServerContext<T> Context>
  [[nodiscard]] Read start_read(const Context& context, std::uint32_t array = 0) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      const auto values = std::make_shared<Tensor<Element>>(shape_);
      return Read{batch.pull(place_, values->elements(), {.array = array}), values};
    });
  }
  template <ServerContext<T> Context>
  [[nodiscard]] Read start_gather(const Context& context, std::span<const std::int64_t> rows) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      const auto values = std::make_shared<Tensor<Element>>(shape_.with_rows(rows.size()));
      return Read{batch.pull_rows(place_, rows, values->elements()), values};
    });
  }
  template <ServerContext<T> Context, class Value, class Update>
  [[nodiscard]] Write start_write(const Context& context, const Value& value, Update update) {
    if constexpr (detail::is_same_value<Value>) {
      return start_write(context, value.value, update);
    } else {
      return begin(context, [&](const server::Batch<T>& batch) {
        if constexpr (std::same_as<Value, Element>) {
          return shape_.elements() == 0 ? Write{} : batch.push_uniform(place_, update, value);
        } else {
          const TensorView<const Element> values = value;
          return batch.push(place_, update, values.elements());
        }
      });
    }
  }
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] Write start_scatter(const Context& context, IndexedSlicesView<Element> slices, Update update) {
    return begin(context, [&](const server::Batch<T>& batch) {
      return batch.push_rows(place_, update, slices.indices(), slices.values().elements(),
                             server::DuplicateRows::in_order);
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
  Address place_;
  Shape shape_;
};

}  // namespace dist
