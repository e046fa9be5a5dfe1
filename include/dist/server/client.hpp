#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/binary.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/shared_memory_client.hpp>
#include <dist/server/update.hpp>
#include <dist/server/wire.hpp>

namespace dist::server {

struct ClientOptions {
  rpc::ChannelOptions channel = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds{60};  ///< of one call
  std::size_t attempts = 3;  ///< of a call, `channel.reconnect` apart, before the server counts as gone (spec L15)
  std::chrono::nanoseconds wait_for_server{0};  ///< for the greeting, until the server listens
  std::uint64_t incarnation = 0;                ///< of the server that has the variables; 0: of whichever answers first
  /// By default `write` between threads of one process, else `read`.
  std::optional<SharedMemoryAccess> shared_memory = {};
};

/// What clients do with the memory of their servers unless they are told.
template <class T>
inline constexpr SharedMemoryAccess default_shared_memory =
    rpc::WithinProcess<T> ? SharedMemoryAccess::write : SharedMemoryAccess::read;

/// One parameter server as its clients see it. Thread-safe.
///
/// Calls that change something have numbers, so that one whose reply was lost is sent again without being done twice. A
/// server that cannot be reached in `attempts` attempts, or that was started again since and so has other variables or none,
/// is ServerUnavailable. What it refuses is a StoreError, what else fails an RpcError.
///
/// Where the client reaches the server's memory, it pulls there itself, and with SharedMemoryAccess::write it also pushes; a call
/// that `start` returns is done then. The first pushes and pulls look for that memory; until it is found, they travel as messages.
template <class T>
class Client {
  static_assert(dist::detail::satisfied<rpc::Transport<T>>,
                "a client of a parameter server names what its calls travel by, such as dist::Local or dist::Grpc");

 public:
  using Transport = T;

  /// A call that goes on: dist::Future. `result` waits. What was lent to it stays until it is done; one that goes before is
  /// cancelled.
  template <class Result>
  class Call;

  /// Of server `index` at that address. Connects when it is first used.
  Client(std::size_t index, const net::Endpoint& endpoint, ClientOptions options = {})
      : index_(index),
        address_(to_string(endpoint)),
        options_(std::move(options)),
        shared_memory_(options_.shared_memory.value_or(default_shared_memory<T>)),
        client_(net::random_number()),
        incarnation_(options_.incarnation),
        channel_(endpoint, options_.channel) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] rpc::State state() const { return channel_.state(); }

  /// Which server this is: another one at the same address has another number. Greets it first, where nobody has.
  [[nodiscard]] std::uint64_t incarnation() {
    if (incarnation_.load(std::memory_order_acquire) == 0) greet();
    return incarnation_.load(std::memory_order_acquire);
  }
  /// Compares the programs and the server's incarnation. Throws StoreError where the server runs another build, and
  /// ServerUnavailable.
  void greet() {
    detail::Message message;
    message.archive().put(binary_identity());
    const std::uint64_t answered = call("store.greet", std::move(message), answering_store).result();
    std::uint64_t expected = 0;
    if (!incarnation_.compare_exchange_strong(expected, answered) && expected != answered) throw lost_variables();
  }

  /// Creates a shard in which every element has that value. Throws StoreError where the server has one of this number.
  template <class Element>
  void create(const ShardSpec& spec, Element value) {
    create<Element>(spec, detail::InitialValue::value, std::as_bytes(std::span{&value, 1}));
  }
  /// Creates a shard with these elements.
  template <class Element, std::size_t extent>
  void create(const ShardSpec& spec, std::span<Element, extent> elements) {
    create<std::remove_const_t<Element>>(spec, detail::InitialValue::elements, std::as_bytes(elements));
  }
  /// Creates a shard whose elements the server makes itself, by `fill(first, elements)` with the number of the first in the
  /// variable and a std::span, or by `fill(i)` for each (spec J07). `fill` is Schedulable.
  template <class Element, class Fill>
  void create_filled(const ShardSpec& spec, const Fill& fill) {
    if constexpr (detail::require_fill<Fill, Element>()) {
      detail::Message message = changing();
      message.archive()
          .put(detail::CreateHead{spec, io::element_type<Element>, detail::InitialValue::function, 0})
          .put(FunctionTable<FillShard>::number<&detail::fill_shard<Fill, Element>>())
          .put(fill);
      call("store.create", std::move(message), nothing).wait();
    }
  }

  /// Sees to `values.size()` slots of a shard from number `first` on, filled with these values unless they were there.
  void ensure_slots(ShardId shard, std::uint64_t first, const std::vector<double>& values) {
    detail::Message message = changing();
    message.archive().put(shard).put(first).put(values);
    call("store.slots", std::move(message), nothing).wait();
  }
  void drop(const std::vector<ShardId>& shards) {
    detail::Message message = changing();
    message.archive().put(shards);
    call("store.drop", std::move(message), nothing).wait();
  }
  /// What the server holds, in the order of the numbers.
  [[nodiscard]] std::vector<ShardInfo> list() {
    detail::Message message = asking();
    return call("store.list", std::move(message), value<std::vector<ShardInfo>>).result();
  }
  /// How stale the pushes to these shards were.
  [[nodiscard]] std::vector<Staleness> staleness(const std::vector<ShardId>& shards) {
    detail::Message message = asking();
    message.archive().put(shards);
    return call("store.staleness", std::move(message), value<std::vector<Staleness>>).result();
  }

  /// Pushes to several shards, each as a whole, in one message, and says what became of each. The request is lent.
  [[nodiscard]] Call<std::vector<Pushed>> start(const PushRequest& request) {
    if (const SharedMemoryClient* const store = near_to_write())
      return Call<std::vector<Pushed>>{[&] { return store->push(request.parts()); }};
    return send(request.parts());
  }
  std::vector<Pushed> push(const PushRequest& request) { return start(request).result(); }

  /// Pulls from several shards in one message, each as a whole, and says which version each had. The request and what it names
  /// are lent.
  [[nodiscard]] Call<std::vector<std::uint64_t>> start(const PullRequest& request) {
    if (const SharedMemoryClient* const store = near()) {
      bool pulled = true;
      Call<std::vector<std::uint64_t>> call{[&] {
        auto versions = store->pull(request.parts());
        pulled = versions.has_value();
        return std::move(versions).value_or(std::vector<std::uint64_t>{});
      }};
      if (pulled) return call;
    }
    return send(request.parts());
  }
  std::vector<std::uint64_t> pull(const PullRequest& request) { return start(request).result(); }

  /// The same for one shard.
  template <class Element, std::size_t extent>
  std::uint64_t pull(ShardId shard, std::span<Element, extent> to, const PullOptions& options = {}) {
    return pull(detail::PullPart{shard, io::element_type<Element>, options, true, {}, std::as_writable_bytes(to)});
  }
  template <class Element, std::size_t extent>
  std::uint64_t pull_rows(ShardId shard, std::span<const std::int64_t> rows, std::span<Element, extent> to,
                          const PullOptions& options = {}) {
    return pull(PullRequest{}.rows(shard, rows, to, options)).front();
  }
  template <class Element, std::size_t extent, class F>
  Pushed push(ShardId shard, const F& update, std::span<Element, extent> values, const PushOptions& options = {}) {
    using Value = std::remove_const_t<Element>;
    if constexpr (detail::require_server_update<F, Value>()) {
      detail::require_version_of_bound(shard, options);
      const detail::TypedUpdate<F, Value> typed{update};
      const detail::PushPart part{
          shard, detail::PushEncoding::dense, options, &typed, {}, detail::ValueBytes{std::as_bytes(values)}};
      if (const SharedMemoryClient* const store = near_to_write()) return store->push(part);
      return send(std::span{&part, 1}).result().front();
    }
    return {};
  }
  template <class Element, std::size_t extent, class F>
  Pushed push_rows(ShardId shard, const F& update, std::span<const std::int64_t> rows,
                   std::span<Element, extent> values, DuplicateRows repeats, const PushOptions& options = {}) {
    return push(PushRequest{}.rows(shard, update, rows, values, repeats, options)).front();
  }

 private:
  /// Takes the result out of a reply of this store, of a pull its head.
  template <class Result>
  using Take = Result(ArchiveReader&, std::uint64_t store, const detail::PullReply* pull);

  static bool nothing(ArchiveReader&, std::uint64_t, const detail::PullReply*) { return true; }
  static std::uint64_t answering_store(ArchiveReader&, std::uint64_t store, const detail::PullReply*) { return store; }
  template <class Value>
  static Value value(ArchiveReader& reply, std::uint64_t, const detail::PullReply*) {
    return reply.get<Value>();
  }
  static std::vector<std::uint64_t> pulled(ArchiveReader& head, std::uint64_t, const detail::PullReply* pull) {
    return pull->versions(head);
  }

  template <class Element>
  void create(const ShardSpec& spec, detail::InitialValue initial, rpc::Chunk bytes) {
    detail::Message message = changing();
    message.archive().put(detail::CreateHead{spec, io::element_type<Element>, initial, bytes.size()});
    message.lend(bytes);
    call("store.create", std::move(message), nothing).wait();
  }

  [[nodiscard]] detail::Message asking() { return of_ordinal(0); }
  [[nodiscard]] detail::Message changing() { return of_ordinal(ordinal_.fetch_add(1, std::memory_order_relaxed) + 1); }
  [[nodiscard]] detail::Message of_ordinal(std::uint64_t ordinal) {
    detail::Message message;
    message.archive().put(detail::RequestHeader{incarnation(), client_, ordinal});
    return message;
  }

  template <class Result>
  [[nodiscard]] Call<Result> call(std::string_view method, detail::Message&& message, Take<Result>& take,
                                  std::span<const detail::PullPart> pull = {}) {
    return Call<Result>{
        std::make_unique<typename Call<Result>::PendingMessage>(*this, method, std::move(message), take, pull)};
  }
  [[nodiscard]] Call<std::vector<Pushed>> send(std::span<const detail::PushPart> parts) {
    detail::Message message = changing();
    detail::encode(parts, message);
    return call("store.push", std::move(message), value<std::vector<Pushed>>);
  }
  [[nodiscard]] Call<std::vector<std::uint64_t>> send(std::span<const detail::PullPart> parts) {
    detail::Message message = asking();
    detail::encode(parts, message);
    return call("store.pull", std::move(message), pulled, parts);
  }
  [[nodiscard]] std::uint64_t pull(const detail::PullPart& part) {
    if (const SharedMemoryClient* const store = near())
      if (const std::optional<std::uint64_t> version = store->pull(part)) return *version;
    return send(std::span{&part, 1}).result().front();
  }

  /// The store, if this process reaches its memory and the server is ready; or nullptr, and messages travel. The server is
  /// asked where its memory is until it has answered.
  [[nodiscard]] const SharedMemoryClient* near() {
    if (shared_memory_ == SharedMemoryAccess::none || channel_.state() != rpc::State::ready) return nullptr;
    if (!has_looked_for_near_.load(std::memory_order_acquire) && !look_for_near()) return nullptr;
    return near_ && near_->is_open() ? &*near_ : nullptr;
  }
  /// The same for pushes.
  [[nodiscard]] const SharedMemoryClient* near_to_write() {
    return shared_memory_ == SharedMemoryAccess::write ? near() : nullptr;
  }
  /// Whether the server has answered. A thread that finds another one asking does not wait for it.
  bool look_for_near() {
    const std::unique_lock lock{looking_for_near_, std::try_to_lock};
    if (!lock.owns_lock()) return false;
    if (has_looked_for_near_.load(std::memory_order_relaxed)) return true;
    try {
      const auto place = call("store.place", asking(), value<StoreMemoryHandle>).result();
      near_ = SharedMemoryClient::reach(place, incarnation(), shared_memory_, [this](ShardId id) {
        detail::Message message = asking();
        message.archive().put(id);
        return call("store.find", std::move(message), value<SharedShard>).result();
      });
    } catch (const Error&) {  // the message that travels instead says what is wrong
      return false;
    }
    has_looked_for_near_.store(true, std::memory_order_release);
    return true;
  }

  [[nodiscard]] ServerUnavailable lost_variables() const {
    return {index_, address_, "has lost its variables: restore a checkpoint",
            "it was started again since they were created",
            "Create the variables again and restore the last checkpoint"};
  }
  [[nodiscard]] ServerUnavailable unavailable(const RpcError& error) const {
    return {index_, address_, "is unavailable", concat(error.why(), ", ", options_.attempts, " times"),
            "Restart the job from its last checkpoint"};
  }

  const std::size_t index_;
  const std::string address_;
  const ClientOptions options_;
  const SharedMemoryAccess shared_memory_;
  const std::uint64_t client_;
  std::atomic<std::uint64_t> ordinal_{0};
  std::atomic<std::uint64_t> incarnation_;
  typename Transport::Channel channel_;
  std::mutex looking_for_near_;
  std::atomic<bool> has_looked_for_near_{false};
  std::optional<SharedMemoryClient> near_;  // does not change any more once has_looked_for_near_
};

template <class T>
template <class Result>
class Client<T>::Call {
 public:
  /// Throws ServerUnavailable, StoreError or RpcError where there is no result.
  void wait() {
    if (started_) return started_->wait();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }
  [[nodiscard]] bool is_done() const { return !started_ || started_->is_done(); }
  /// Waits, and gives the result away.
  [[nodiscard]] Result result() {
    wait();
    return started_ ? started_->take_result() : std::move(*result_);
  }

 private:
  friend class Client;
  /// It stays where it is, because the transport reads it.
  class PendingMessage;

  explicit Call(std::unique_ptr<PendingMessage> started) : started_(std::move(started)) {}
  /// A call that is done at once, with the result `answer()` or what that throws.
  template <std::invocable Answer>
  explicit Call(const Answer& answer) {
    try {
      result_ = answer();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::unique_ptr<PendingMessage> started_;
  // Of a call that was done at once:
  std::optional<Result> result_;
  std::exception_ptr failure_;
};

template <class T>
template <class Result>
class Client<T>::Call<Result>::PendingMessage {
 public:
  /// A reply to a pull puts the elements where the parts say, which are lent; other replies have none.
  PendingMessage(Client& client, std::string_view method, detail::Message&& message, Take<Result>& take,
                 std::span<const detail::PullPart> pull)
      : client_(client),
        method_(method),
        message_(std::move(message)),
        pieces_(message_.pieces()),
        take_(take),
        pull_(pull),
        is_pull_(method == "store.pull") {
    begin();
  }
  PendingMessage(const PendingMessage&) = delete;
  PendingMessage& operator=(const PendingMessage&) = delete;
  /// Nothing reads what was lent any more.
  ~PendingMessage() {
    if (!call_) return;
    call_->cancel();
    try {
      call_->wait();
    } catch (const RpcError&) {  // as it was cancelled
    }
  }

  void wait() {
    for (std::size_t attempt = 1; !result_; ++attempt) try {
        if (!call_) begin();
        const typename T::Reply reply = call_->reply();
        call_.reset();
        result_ = read(reply);
      } catch (const RpcError& error) {
        call_.reset();
        if (!rpc::is_lost(error)) throw;
        if (attempt >= client_.options_.attempts) throw client_.unavailable(error);
        std::this_thread::sleep_for(client_.options_.channel.reconnect);  // then the channel has looked again
      }
  }
  [[nodiscard]] bool is_done() const { return result_ || !call_ || call_->is_done(); }
  [[nodiscard]] Result take_result() { return std::move(*result_); }

 private:
  void begin() {
    const bool greets = method_ == "store.greet" && client_.options_.wait_for_server.count() > 0;
    if (is_pull_) pulled_.emplace(pull_);
    const rpc::CallOptions options{greets ? client_.options_.wait_for_server : client_.options_.timeout, greets,
                                   pulled_ ? &*pulled_ : nullptr};
    call_.emplace(client_.channel_.start(method_, pieces_, options));
  }
  [[nodiscard]] Result read(const typename T::Reply& reply) {
    if (pulled_)
      for (const rpc::Chunk piece : reply.pieces()) pulled_->take(piece);
    const rpc::Chunk head = pulled_ ? pulled_->head() : rpc::Chunk{};
    ArchiveReader reader{pulled_ ? rpc::ChunkSpan{&head, 1} : reply.pieces(), "A reply"};
    const auto problem = reader.get<Problem>();
    if (problem != Problem{}) {
      const auto said = reader.get<std::string>();
      const auto why = reader.get<std::string>();
      const auto suggestion = reader.get<std::string>();
      if (problem == Problem::lost_variables) throw client_.lost_variables();
      throw StoreError(problem, said, why, suggestion);
    }
    const auto store = reader.get<std::uint64_t>();
    Result result = take_(reader, store, pulled_ ? &*pulled_ : nullptr);
    reader.expect_end();
    return result;
  }

  Client& client_;
  const std::string_view method_;  ///< a literal
  const detail::Message message_;
  rpc::ChunkList pieces_;
  Take<Result>& take_;
  const std::span<const detail::PullPart> pull_;
  const bool is_pull_;
  std::optional<detail::PullReply> pulled_;  ///< of the attempt
  std::optional<typename T::Call> call_;
  std::optional<Result> result_;
};

}  // namespace dist::server
