#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/rpc.hpp>
#include <dist/context/cross_replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/client.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/update.hpp>
#include <dist/variable/given_value.hpp>

namespace dist {

namespace detail {

template <class C, class T>
concept ScopeOfServers = InCrossReplica<C> && requires(const C& context) {
  { context.strategy().clients() } -> std::same_as<server::Clients<T>&>;
};
template <class C, class T>
concept WorkerOfServers = requires(const C& context) {
  { context.template clients<T>() } -> std::same_as<server::Clients<T>&>;
};

}  // namespace detail

/// Where variables on parameter servers are used, whose calls travel by `T`: the scope of a ParameterServer on the
/// coordinator, or the context of a scheduled function on a worker.
template <class C, class T>
concept ServerContext = detail::ScopeOfServers<C, T> || detail::WorkerOfServers<C, T>;

namespace server {

/// The clients that a context has.
template <class T, ServerContext<T> Context>
[[nodiscard]] Clients<T>& clients_of(const Context& context) {
  if constexpr (dist::detail::ScopeOfServers<Context, T>)
    return context.strategy().clients();
  else
    return context.template clients<T>();
}

/// Elements on their way from a server: a Work. `values()` are there when it is done, and `version()` says which values of
/// the shard they are, for a push that comes from them.
template <class Element, class T>
class ServerRead {
 public:
  /// `add(request, elements)` says what is wanted; nothing is asked for where there is room for nothing.
  template <class Add>
  ServerRead(std::shared_ptr<Client<T>> client, const Shape& shape, const Add& add)
      : state_(std::make_unique<State>(std::move(client), shape)) {
    if (state_->values.size() == 0) return;
    add(state_->request, state_->values.elements());
    state_->call.emplace(state_->client->start(state_->request));
  }

  /// Throws what Client::Call does.
  void wait() {
    if (!state_->call) return;
    state_->version = state_->call->result().front();
    state_->call.reset();
  }
  [[nodiscard]] bool is_done() const { return !state_->call || state_->call->is_done(); }
  [[nodiscard]] TensorView<const Element> values() const noexcept { return std::as_const(state_->values).view(); }
  [[nodiscard]] std::uint64_t version() const noexcept { return state_->version; }

 private:
  struct State {
    State(std::shared_ptr<Client<T>> client_of_shard, const Shape& shape)
        : client(std::move(client_of_shard)), values(shape) {}
    std::shared_ptr<Client<T>> client;
    Tensor<Element> values;
    PullRequest request;
    std::uint64_t version = unknown_version;
    std::optional<typename Client<T>::template Call<std::vector<std::uint64_t>>> call;
  };

  std::unique_ptr<State> state_;
};

/// Values on their way to a server: a Work. `pushed()` says what became of them when it is done.
template <class Element, class T>
class ServerWrite {
 public:
  /// `add(request, element)` says what is pushed; `element` is room for a number of each element, `numbers` of them, that is
  /// kept as long as it takes.
  template <class Add>
  ServerWrite(std::shared_ptr<Client<T>> client, std::size_t numbers, const Add& add)
      : state_(std::make_unique<State>(std::move(client), numbers)) {
    add(state_->request, std::span<Element>{state_->numbers});
    if (state_->request.size() != 0) state_->call.emplace(state_->client->start(state_->request));
  }

  /// Throws what Client::Call does.
  void wait() {
    if (!state_->call) return;
    state_->pushed = state_->call->result().front();
    state_->call.reset();
  }
  [[nodiscard]] bool is_done() const { return !state_->call || state_->call->is_done(); }
  [[nodiscard]] const Pushed& pushed() const noexcept { return state_->pushed; }

 private:
  struct State {
    State(std::shared_ptr<Client<T>> client_of_shard, std::size_t count)
        : client(std::move(client_of_shard)), numbers(count) {}
    std::shared_ptr<Client<T>> client;
    std::vector<Element> numbers;
    PushRequest request;
    Pushed pushed;
    std::optional<typename Client<T>::template Call<std::vector<Pushed>>> call;
  };

  std::unique_ptr<State> state_;
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
  struct Place {
    std::uint64_t server = 0;       ///< its number among the parameter servers
    std::uint64_t incarnation = 0;  ///< of that server, see server::Client
    server::ShardId id = 0;
    std::string name = {};
  };

  ServerShard(Place place, Shape shape) : place_(std::move(place)), shape_(std::move(shape)) {}

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& name() const noexcept { return place_.name; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }

  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_read(const Context& context) const {
    return start_read_slot(context, 0);
  }
  /// Array 0 are the values, then come the slots that optimizers keep beside them.
  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_read_slot(const Context& context, std::uint32_t array) const {
    return {client(context), shape_, [&](server::PullRequest& request, std::span<Element> elements) {
              request.dense(place_.id, elements, array);
            }};
  }
  template <ServerContext<T> Context>
  [[nodiscard]] server::ServerRead<Element, T> start_gather(const Context& context,
                                                            std::span<const std::int64_t> rows) const {
    return {
        client(context), shape_.with_rows(rows.size()),
        [&](server::PullRequest& request, std::span<Element> elements) { request.rows(place_.id, rows, elements); }};
  }
  template <ServerContext<T> Context, class Value, class Update>
  [[nodiscard]] server::ServerWrite<Element, T> start_write(const Context& context, const Value& value, Update update) {
    if constexpr (detail::is_same_value<Value>) {
      return start_write(context, value.value, update);
    } else {
      constexpr bool is_number = std::same_as<Value, Element>;
      const std::size_t size = shape_.elements();
      return {client(context), is_number ? size : 0, [&](server::PushRequest& request, std::span<Element> numbers) {
                if (size == 0) return;
                if constexpr (is_number) {
                  std::fill(numbers.begin(), numbers.end(), value);
                  request.dense(place_.id, update, std::span<const Element>{numbers});
                } else {
                  request.dense(place_.id, update, std::span<const Element>{value.data(), size});
                }
              }};
    }
  }
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<Element, T> start_scatter(const Context& context, IndexedSlicesView<Element> slices,
                                                              Update update) {
    return start_push_rows(context, update, slices, server::Repeats::in_order, {});
  }

  /// Applies an optimizer's functor, or another update, to all elements with what `values` has for each.
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<Element, T> start_push(const Context& context, const Update& update,
                                                           TensorView<const Element> values,
                                                           const server::PushOptions& options) {
    return {client(context), 0, [&](server::PushRequest& request, std::span<Element>) {
              if (values.size() != 0) request.dense(place_.id, update, values.elements(), options);
            }};
  }
  /// The same to the rows that `slices` names.
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] server::ServerWrite<Element, T> start_push_rows(const Context& context, const Update& update,
                                                                IndexedSlicesView<Element> slices,
                                                                server::Repeats repeats,
                                                                const server::PushOptions& options) {
    return {client(context), 0, [&](server::PushRequest& request, std::span<Element>) {
              if (slices.rows() != 0)
                request.rows(place_.id, update, slices.indices(), slices.values().elements(), repeats, options);
            }};
  }

  /// The client of its server. Throws InvalidArgument in a context without such a server.
  template <ServerContext<T> Context>
  [[nodiscard]] std::shared_ptr<server::Client<T>> client(const Context& context) const {
    return server::clients_of<T>(context).of(static_cast<std::size_t>(place_.server), place_.incarnation);
  }

  void write_to(ArchiveWriter& archive) const { archive.put(place_).put(shape_); }
  [[nodiscard]] static ServerShard read_from(ArchiveReader& archive) {
    auto place = archive.get<Place>();
    return ServerShard{std::move(place), archive.get<Shape>()};
  }

 private:
  Place place_;
  Shape shape_;
};

}  // namespace dist
