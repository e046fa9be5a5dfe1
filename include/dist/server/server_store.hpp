#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/text.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/server/variable_cache.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/store.hpp>

namespace dist {

/// The store of a ParameterServer. Variables are stored in shards on parameter servers; the steps of this process's
/// replica use cached copies (server::VariableCache).
///
/// | variable | the copy when a step begins | what is pushed when the step ends |
/// |---|---|---|
/// | OnWrite | the values | the writes of the step in their order, and the updates of optimizers |
/// | OnRead, Sum | zeros | the copy, which the servers add |
/// | OnRead, Mean | the values | the copy, if the step has changed it |
/// | OnShard: the slots of optimizers | nothing | nothing: updates change them on the servers |
///
/// Outside steps, a read pulls what has changed, and a write is one push.
template <rpc::Transport T>
struct ServerStore : MirroredStore {
  static constexpr bool remote = true;
  /// The transport of calls to the servers.
  using Transport = T;
  /// The cached copy of a variable of any type.
  using Variable = server::CachedVariable<T>;
  /// The cached copies of a process's variables.
  using Cache = server::VariableCache<T>;

  /// The variable on the servers; null while it is being created.
  template <class V>
  [[nodiscard]] static Variable* on_servers(const V& variable) noexcept {
    return static_cast<Variable*>(variable.remote().get());
  }
  /// The cache of the context's strategy.
  template <class Context>
  [[nodiscard]] static Cache& cache_of(const Context& context) noexcept {
    return context.strategy().variable_cache();
  }

  /// Waits until these elements of the copy have arrived. Throws ServerUnavailable, StoreError or RpcError.
  template <class V>
  static void await(const auto& context, const V& variable, IndexRange elements) {
    if (Variable* const cached = on_servers(variable)) cache_of(context).await(*cached, elements);
  }
  /// Marks the copy as changed in place. Such changes of OnWrite variables are not pushed.
  template <class V>
  static void change(const auto& context, const V& variable) {
    if constexpr (!std::same_as<typename V::Synchronization, OnWrite>)
      if (Variable* const cached = on_servers(variable)) cache_of(context).change(*cached);
  }
  /// Updates `range`, which must consist of whole shards, by `update(old, given[i])`.
  template <class V, class Values, class Update>
  static void write(const auto& context, const V& variable, IndexRange range, const Values& given,
                    const Update& update) {
    using E = typename V::Element;
    Variable* const cached = on_servers(variable);
    const auto copy = variable.copy(context);
    const auto update_copy = [&] {
      for (std::size_t i = 0; i < range.size(); ++i) copy[range.begin + i] = update(copy[range.begin + i], given[i]);
    };
    if (cached == nullptr) return update_copy();
    Cache& cache = cache_of(context);
    constexpr bool is_uniform = std::same_as<Values, detail::Uniform<E>>;
    std::span<const E> values;
    if constexpr (is_uniform)
      values = {&given.number, 1};
    else if constexpr (std::is_pointer_v<Values>)
      values = {given, range.size()};
    else
      values = given;
    const auto write_there = [&](const auto& function) {
      return cache.write(
          *cached, range, std::as_bytes(values), is_uniform,
          [&](server::PushRequest& request, const server::detail::PushPart& part) { request.put<E>(part, function); });
    };
    if constexpr (detail::is_on_shard<typename V::Synchronization>) {
      static_assert(std::same_as<Update, detail::Assign>);
      write_there(server::AssignSlot{});
    } else if (write_there(update)) {
      cache.await(*cached, range);
      cache.change(*cached);
      update_copy();
      if (cached->kind() == server::CacheKind::sum && !cache.is_local())  // the copy holds only what the step adds
        for (std::size_t i = range.begin; i < range.end; ++i) copy[i] = E{};
    }
  }

  /// Waits for pending pushes of the variable's gradients, which will be overwritten.
  template <class V>
  static void renew(const InReplica auto& replica, const V& variable) {
    cache_of(replica).wait_for_pushes();
    on_servers(variable)->renew();
  }

  /// Throws InvalidArgument if a tensor of the variable is divided among servers, on behalf of an optimizer that scales
  /// by norms of whole tensors.
  template <class V>
  static void require_whole_tensors(std::string_view optimizer, const V& variable) {
    const Variable& cached = *on_servers(variable);
    for (const IndexRange shards : cached.tensors())
      if (shards.size() > 1) {
        const std::string& first = cached.spec().shards[shards.begin].place.name;
        throw InvalidArgument(concat(optimizer, " cannot train a parameter that is divided among parameter servers"),
                              concat("it scales each step by norms of a whole parameter, and ",
                                     std::string_view{first}.substr(0, first.rfind("/part_")), " has ", shards.size(),
                                     " shards, each with its own norm"),
                              "Give the ParameterServer a partitioner that leaves the parameter whole, or no "
                              "partitioner, or use nn::Adam or nn::AdamW");
      }
  }

  /// The copy has its values already.
  template <class Strategy, class V>
  static void spread(Strategy&, const V&, bool) {}
};

/// Returns the staleness of applied updates of a variable, and the number of rejected ones
/// (ParameterServerOptions::max_staleness).
template <InCrossReplica Scope, class V>
  requires RemoteStore<StoreOf<Scope>>
[[nodiscard]] server::Staleness staleness(const Scope& scope, const V& variable) {
  return scope.strategy().variable_cache().staleness(*StoreOf<Scope>::on_servers(variable));
}

}  // namespace dist
