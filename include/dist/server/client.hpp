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

template <class T, class Request>
class PendingMessage;

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
/// Where the client reaches the server's memory, it pulls there itself, and with SharedMemoryAccess::write it also pushes. The first
/// pushes and pulls look for that memory; until it is found, they travel as messages.
template <class T>
class Client {
  static_assert(dist::detail::satisfied<rpc::Transport<T>>,
                "a client of a parameter server names what its calls travel by, such as dist::Local or dist::Grpc");

 public:
  using Transport = T;

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
    const std::uint64_t answered = call("store.greet", {}, binary_identity());
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
      call("store.create", changing(),
           detail::CreateHead{spec, io::element_type<Element>, detail::InitialValue::function, 0},
           FunctionTable<FillShard>::number<&detail::fill_shard<Fill, Element>>(), fill);
    }
  }

  /// Sees to `values.size()` slots of a shard from number `first` on, filled with these values unless they were there.
  void ensure_slots(ShardId shard, std::uint64_t first, const std::vector<double>& values) {
    call("store.slots", changing(), shard, first, values);
  }
  void drop(const std::vector<ShardId>& shards) { call("store.drop", changing(), shards); }
  /// What the server holds, in the order of the numbers.
  [[nodiscard]] std::vector<ShardInfo> list() { return call<std::vector<ShardInfo>>("store.list", asking()); }
  /// How stale the pushes to these shards were.
  [[nodiscard]] std::vector<Staleness> staleness(const std::vector<ShardId>& shards) {
    return call<std::vector<Staleness>>("store.staleness", asking(), shards);
  }

  /// Pushes to several shards, each as a whole, in one message, and returns the result for each.
  std::vector<Pushed> push(const PushRequest& request) { return result_of(request); }
  /// Pulls from several shards in one message, each as a whole, and returns the version of each.
  std::vector<std::uint64_t> pull(const PullRequest& request) { return result_of(request); }
  /// Pulls one shard, and returns its version.
  template <class Element, std::size_t extent>
  std::uint64_t pull(ShardId shard, std::span<Element, extent> to, const PullOptions& options = {}) {
    const detail::PullPart part{shard, io::element_type<Element>, options, true, {}, std::as_writable_bytes(to)};
    if (const std::optional<std::uint64_t> version = in_memory(part)) return *version;
    return by_message<PullRequest>({&part, 1}).front();
  }
  /// Pushes to one shard.
  template <class Element, std::size_t extent, class F>
  Pushed push(ShardId shard, const F& update, std::span<Element, extent> values, const PushOptions& options = {}) {
    using Value = std::remove_const_t<Element>;
    if constexpr (detail::require_server_update<F, Value>()) {
      detail::require_version_of_bound(shard, options);
      const detail::TypedUpdate<F, Value> typed{update};
      const detail::PushPart part{
          shard, detail::PushEncoding::dense, options, &typed, {}, detail::ValueBytes{std::as_bytes(values)}};
      if (const std::optional<Pushed> pushed = in_memory(part)) return *pushed;
      return by_message<PushRequest>({&part, 1}).front();
    }
    return {};
  }

 private:
  template <class, class>
  friend class PendingMessage;

  template <class Element>
  void create(const ShardSpec& spec, detail::InitialValue initial, rpc::Chunk bytes) {
    detail::Message message = changing();
    message.archive().put(detail::CreateHead{spec, io::element_type<Element>, initial, bytes.size()});
    message.lend(bytes);
    call("store.create", std::move(message));
  }

  /// The beginning of a request; one that changes something has a number.
  [[nodiscard]] detail::Message asking(std::uint64_t ordinal = 0) {
    detail::Message message;
    message.archive().put(detail::RequestHeader{incarnation(), client_, ordinal});
    return message;
  }
  [[nodiscard]] detail::Message changing() { return asking(ordinal_.fetch_add(1, std::memory_order_relaxed) + 1); }

  /// Begins one attempt to send a request. The pieces and the sink are lent to the call.
  [[nodiscard]] typename T::Call start(std::string_view method, rpc::ChunkSpan pieces, rpc::ReplySink* sink = nullptr) {
    const bool waits_for_server = method == "store.greet" && options_.wait_for_server.count() > 0;
    return channel_.start(method, pieces,
                          {waits_for_server ? options_.wait_for_server : options_.timeout, waits_for_server, sink});
  }
  /// Returns the result of `attempt()`, which is called again while the server cannot be reached, `attempts` times in all.
  template <class Attempt>
  [[nodiscard]] auto repeat(const Attempt& attempt) {
    for (std::size_t number = 1;; ++number) try {
        return attempt();
      } catch (const RpcError& error) {
        if (!rpc::is_lost(error)) throw;
        if (number >= options_.attempts) throw unavailable(error);
        std::this_thread::sleep_for(options_.channel.reconnect);  // then the channel has looked again
      }
  }
  /// Sends a request with these arguments, waits for the reply and returns its value, or the incarnation of the server if the reply
  /// has no value.
  template <class Value = void, class... A>
  auto call(std::string_view method, detail::Message message, const A&... arguments) {
    (message.archive().put(arguments), ...);
    const rpc::ChunkList pieces = message.pieces();
    return repeat([&] {
      const typename T::Reply reply = start(method, pieces).reply();
      return read(reply.pieces(), value<Value>);
    });
  }
  template <class Value>
  [[nodiscard]] static auto value(ArchiveReader& reply, std::uint64_t store) {
    if constexpr (std::is_void_v<Value>)
      return store;
    else
      return reply.get<Value>();
  }
  /// Returns what `get(reader, incarnation)` reads from a reply. Throws the error that the server reports.
  template <class Get>
  [[nodiscard]] auto read(rpc::ChunkSpan reply, const Get& get) const {
    ArchiveReader reader{reply, "A reply"};
    if (const auto problem = reader.get<Problem>(); problem != Problem{}) {
      const auto said = reader.get<std::string>();
      const auto why = reader.get<std::string>();
      const auto suggestion = reader.get<std::string>();
      if (problem == Problem::lost_variables) throw lost_variables();
      throw StoreError(problem, said, why, suggestion);
    }
    const auto store = reader.get<std::uint64_t>();
    auto result = get(reader, store);
    reader.expect_end();
    return result;
  }

  template <class Request>
  [[nodiscard]] auto result_of(const Request& request) {
    auto results = in_memory(request.parts());
    return results ? std::move(*results) : by_message<Request>(request.parts());
  }
  template <class Request>
  [[nodiscard]] auto by_message(std::span<const typename Request::Part> parts) {
    PendingMessage<T, Request> message{*this};
    message.send_message(parts);
    message.wait();
    return std::move(message.results_);
  }
  /// Pushes or pulls one part or several in the memory of the server. Returns nothing if they have to travel as a message.
  template <class Parts>
  [[nodiscard]] auto in_memory(const Parts& parts) {
    if constexpr (requires(const SharedMemoryClient& store) { store.push(parts); }) {
      const SharedMemoryClient* const store = shared_memory_ == SharedMemoryAccess::write ? near() : nullptr;
      return store ? std::optional{store->push(parts)} : std::nullopt;
    } else {
      const SharedMemoryClient* const store = near();
      return store ? store->pull(parts) : std::nullopt;
    }
  }

  /// The store, if this process reaches its memory and the server is ready; or nullptr, and messages travel. The server is
  /// asked where its memory is until it has answered.
  [[nodiscard]] const SharedMemoryClient* near() {
    if (shared_memory_ == SharedMemoryAccess::none || channel_.state() != rpc::State::ready) return nullptr;
    if (!has_looked_for_near_.load(std::memory_order_acquire) && !look_for_near()) return nullptr;
    return near_ && near_->is_open() ? &*near_ : nullptr;
  }
  /// Whether the server has answered. A thread that finds another one asking does not wait for it.
  bool look_for_near() {
    const std::unique_lock lock{looking_for_near_, std::try_to_lock};
    if (!lock.owns_lock()) return false;
    if (has_looked_for_near_.load(std::memory_order_relaxed)) return true;
    try {
      const auto place = call<StoreMemoryHandle>("store.place", asking());
      near_ = SharedMemoryClient::reach(place, incarnation(), shared_memory_,
                                        [this](ShardId id) { return call<SharedShard>("store.find", asking(), id); });
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

/// One message to a server that pushes to several shards or pulls from them, and its reply. It is sent again, and applied once, if
/// the server was lost. The transport reads it where it is, and what the parts refer to is lent until it is done; if it is destroyed
/// before, it is cancelled. Where the client reaches the memory of the server, `send` pushes or pulls there.
///
/// `wait` throws ServerUnavailable, StoreError or RpcError.
template <class T, class Request>
class PendingMessage {
  using RequestPart = typename Request::Part;
  static constexpr bool pulls = std::same_as<Request, PullRequest>;

 public:
  using Result = typename Request::Result;

  explicit PendingMessage(std::shared_ptr<Client<T>> client) : client_(std::move(client)) {}
  /// The client outlives this.
  explicit PendingMessage(Client<T>& client) : client_(std::shared_ptr<void>{}, &client) {}
  PendingMessage(const PendingMessage&) = delete;
  PendingMessage& operator=(const PendingMessage&) = delete;
  ~PendingMessage() {
    if (!call_) return;
    call_->cancel();
    try {
      call_->wait();
    } catch (const RpcError&) {  // as it was cancelled
    }
  }

  /// What is pulled from one shard or pushed to it: a Future. Throws what its message throws, again each time, and InvalidArgument
  /// if the message was not sent.
  class Part {
   public:
    /// A part without elements, which needs no message.
    Part() = default;
    /// The part that was added last to the request of a message.
    explicit Part(std::shared_ptr<PendingMessage> message)
        : message_(std::move(message)), number_(message_->request().size() - 1) {}

    void wait() {
      if (message_) message_->wait();
    }
    [[nodiscard]] bool is_done() const { return !message_ || message_->is_done(); }
    /// When it is done: the version of the shard that was pulled, which is the known one if no elements were sent, or what became of
    /// a push.
    [[nodiscard]] Result result() const { return message_ ? message_->results_[number_] : Request::of_nothing; }
    /// Keeps memory that was lent as long as the message.
    void keep(std::shared_ptr<void> memory) {
      if (message_) message_->kept_.push_back(std::move(memory));
    }

   private:
    std::shared_ptr<PendingMessage> message_;
    std::size_t number_ = 0;
  };

  [[nodiscard]] const Client<T>* client() const noexcept { return &*client_; }
  /// The parts that `send` sends.
  [[nodiscard]] Request& request() noexcept { return request_; }

  /// Does not wait, and does not fail: `wait` throws the errors.
  void send() {
    try {
      if (auto results = client_->in_memory(request_.parts()))
        results_ = std::move(*results);
      else
        send_message(request_.parts());
    } catch (...) {
      failure_ = std::current_exception();
    }
    is_sent_ = true;
  }
  void wait() {
    if (!is_sent_)
      throw InvalidArgument("Nobody answers the parts of a batch", "it was not sent",
                            "Call its send() before what it pulls or pushes is waited for");
    if (call_) try {
        results_ = client_->repeat([&] {
          typename T::Call call = call_ ? *std::exchange(call_, std::nullopt) : start();
          return read(call.reply());
        });
      } catch (...) {
        failure_ = std::current_exception();
      }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }
  [[nodiscard]] bool is_done() const { return is_sent_ && (!call_ || call_->is_done()); }

 private:
  friend class Client<T>;

  void send_message(std::span<const RequestPart> parts) {
    parts_ = parts;
    message_ = pulls ? client_->asking() : client_->changing();
    detail::encode(parts, message_);
    pieces_ = message_.pieces();
    call_.emplace(start());
    is_sent_ = true;
  }
  [[nodiscard]] typename T::Call start() {
    if constexpr (pulls)
      return client_->start("store.pull", pieces_, &pulled_.emplace(parts_));
    else
      return client_->start("store.push", pieces_);
  }
  [[nodiscard]] std::vector<Result> read(const typename T::Reply& reply) {
    if constexpr (pulls) {
      for (const rpc::Chunk piece : reply.pieces()) pulled_->take(piece);
      const rpc::Chunk head = pulled_->head();
      return client_->read(rpc::ChunkSpan{&head, 1},
                           [&](ArchiveReader& reader, std::uint64_t) { return pulled_->versions(reader); });
    } else {
      return client_->read(reply.pieces(), Client<T>::template value<std::vector<Result>>);
    }
  }

  const std::shared_ptr<Client<T>> client_;
  Request request_;
  std::vector<std::shared_ptr<void>> kept_;  ///< memory that the request refers to
  std::span<const RequestPart> parts_;
  detail::Message message_;
  rpc::ChunkList pieces_;
  std::optional<detail::PullReply> pulled_;  ///< of the attempt
  std::optional<typename T::Call> call_;     ///< the attempt
  bool is_sent_ = false;
  std::exception_ptr failure_;
  std::vector<Result> results_;
};

}  // namespace dist::server
