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
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
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
  std::size_t attempts = 3;  ///< of a call, `channel.reconnect` apart, before the server is unavailable (spec L15)
  std::chrono::nanoseconds wait_for_server{0};  ///< for the greeting, until the server listens
  std::uint64_t incarnation = 0;  ///< of the server that holds the variables; 0: of the first server that answers

  /// Default: `write` between threads of one process, otherwise `read`.
  std::optional<SharedMemoryAccess> shared_memory = {};
};

/// The default of ClientOptions::shared_memory.
template <class T>
inline constexpr SharedMemoryAccess default_shared_memory =
    rpc::WithinProcess<T> ? SharedMemoryAccess::write : SharedMemoryAccess::read;

/// A client of one parameter server. Thread-safe.
///
/// Changes are numbered, so that a client can resend one whose reply was lost. Calls throw ServerUnavailable if the
/// server is unreachable after `attempts` attempts or has lost its variables in a restart; StoreError if it rejects the
/// request; RpcError on other failures.
///
/// If the client can map the server's memory, it pulls from there; with SharedMemoryAccess::write it also pushes there.
/// Until the first calls have located the memory, they are sent as messages.
template <class T>
class Client {
  static_assert(
      dist::detail::satisfied<rpc::Transport<T>>,
      "a client of a parameter server takes a transport as its template argument, such as dist::Local or dist::Grpc");

 public:
  using Transport = T;

  /// Connects on first use.
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

  /// A number that changes when the server restarts. Greets the server if necessary.
  [[nodiscard]] std::uint64_t incarnation() {
    if (incarnation_.load(std::memory_order_acquire) == 0) greet();
    return incarnation_.load(std::memory_order_acquire);
  }
  /// Checks the program and the incarnation of the server. Throws StoreError if the server runs another build, and
  /// ServerUnavailable.
  void greet() {
    const std::uint64_t answered = call("store.greet", {}, binary_identity());
    std::uint64_t expected = 0;
    if (!incarnation_.compare_exchange_strong(expected, answered) && expected != answered) throw lost_variables();
  }

  /// Creates a shard with this value in all elements. Throws StoreError if the id is in use.
  template <class Element>
  void create(const ShardSpec& spec, Element value) {
    create(spec, io::element_type<Element>, detail::InitialValue::value, std::as_bytes(std::span{&value, 1}));
  }
  template <class Element, std::size_t extent>
  void create(const ShardSpec& spec, std::span<Element, extent> elements) {
    create(spec, io::element_type<std::remove_const_t<Element>>, std::as_bytes(elements));
  }
  /// Overload for an element type known only at run time.
  void create(const ShardSpec& spec, io::ElementType type, rpc::Chunk elements) {
    create(spec, type, detail::InitialValue::elements, elements);
  }
  /// Creates a shard whose elements the server computes, by `fill(first, elements)` with the index of the first element
  /// in the variable and a std::span, or by `fill(i)` for each (spec J07). `fill` must be Schedulable.
  template <class Element, class Fill>
  void create_filled(const ShardSpec& spec, const Fill& fill) {
    if constexpr (detail::require_fill<Fill, Element>()) {
      call("store.create", changing(),
           detail::CreateHead{spec, io::element_type<Element>, detail::InitialValue::function, 0},
           FunctionTable<FillShard>::number<&detail::fill_shard<Fill, Element>>(), fill);
    }
  }

  /// Creates the missing ones of slots `first` to `first + values.size() - 1`, filled with these values.
  void ensure_slots(ShardId shard, std::uint64_t first, const std::vector<double>& values) {
    call("store.slots", changing(), shard, first, values);
  }
  void drop(const std::vector<ShardId>& shards) { call("store.drop", changing(), shards); }
  /// Lists the server's shards in the order of their ids.
  [[nodiscard]] std::vector<ShardInfo> list() { return call<std::vector<ShardInfo>>("store.list", asking()); }
  [[nodiscard]] std::vector<Staleness> staleness(const std::vector<ShardId>& shards) {
    return call<std::vector<Staleness>>("store.staleness", asking(), shards);
  }

  /// Pushes to several shards in one message, to each atomically.
  std::vector<Pushed> push(const PushRequest& request) { return result_of(request); }
  /// Pulls several shards in one message, each atomically. Returns their versions.
  std::vector<std::uint64_t> pull(const PullRequest& request) { return result_of(request); }
  /// Returns the version of the shard.
  template <class Element, std::size_t extent>
  std::uint64_t pull(ShardId shard, std::span<Element, extent> to, const PullOptions& options = {}) {
    const detail::PullPart part{shard, io::element_type<Element>, options, true, {}, std::as_writable_bytes(to)};
    if (const std::optional<std::uint64_t> version = in_memory(part)) return *version;
    return by_message<PullRequest>({&part, 1}).front();
  }
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

  void create(const ShardSpec& spec, io::ElementType type, detail::InitialValue initial, rpc::Chunk bytes) {
    detail::Message message = changing();
    message.archive().put(detail::CreateHead{spec, type, initial, bytes.size()});
    message.lend(bytes);
    call("store.create", std::move(message));
  }

  /// `ordinal` numbers changes; 0: no change.
  [[nodiscard]] detail::Message asking(std::uint64_t ordinal = 0) {
    detail::Message message;
    message.archive().put(detail::RequestHeader{incarnation(), client_, ordinal});
    return message;
  }
  [[nodiscard]] detail::Message changing() { return asking(ordinal_.fetch_add(1, std::memory_order_relaxed) + 1); }

  /// Starts one attempt. The pieces and the sink must outlive the call.
  [[nodiscard]] typename T::Call start(std::string_view method, rpc::ChunkSpan pieces, rpc::ReplySink* sink = nullptr) {
    const bool waits_for_server = method == "store.greet" && options_.wait_for_server.count() > 0;
    return channel_.start(method, pieces,
                          {waits_for_server ? options_.wait_for_server : options_.timeout, waits_for_server, sink});
  }
  /// Repeats `attempt()` while the server is unreachable, up to `attempts` times in total.
  template <class Attempt>
  [[nodiscard]] auto repeat(const Attempt& attempt) {
    for (std::size_t number = 1;; ++number) try {
        return attempt();
      } catch (const RpcError& error) {
        if (!rpc::is_lost(error)) throw;
        if (number >= options_.attempts) throw unavailable(error);
        std::this_thread::sleep_for(options_.channel.reconnect);  // by then the channel has tried to reconnect
      }
  }
  /// Sends a request and waits. Returns the value of the reply or, without a value, the incarnation of the server.
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
  /// Returns what `get(reader, incarnation)` reads. Throws the error in the reply, if any.
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
  /// Pushes or pulls in the server's memory. Returns nothing if a message is needed.
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

  /// Returns the store if its memory can be mapped and the server is ready, otherwise nullptr. Requests the location
  /// until the server has answered.
  [[nodiscard]] const SharedMemoryClient* near() {
    if (shared_memory_ == SharedMemoryAccess::none || channel_.state() != rpc::State::ready) return nullptr;
    if (!has_looked_for_near_.load(std::memory_order_acquire) && !look_for_near()) return nullptr;
    return near_ && near_->is_open() ? &*near_ : nullptr;
  }
  /// True if the server has answered; false at once if another thread is asking.
  [[gnu::cold]] bool look_for_near() {
    const std::unique_lock lock{looking_for_near_, std::try_to_lock};
    if (!lock.owns_lock()) return false;
    if (has_looked_for_near_.load(std::memory_order_relaxed)) return true;
    try {
      const auto place = call<StoreMemoryHandle>("store.place", asking());
      near_ = SharedMemoryClient::reach(place, incarnation(), shared_memory_,
                                        [this](ShardId id) { return call<SharedShard>("store.find", asking(), id); });
    } catch (const Error&) {  // the message that is sent instead reports the error
      return false;
    }
    has_looked_for_near_.store(true, std::memory_order_release);
    return true;
  }

  [[nodiscard, gnu::cold]] ServerUnavailable lost_variables() const {
    return {index_, address_, "has lost its variables: restore a checkpoint",
            "it was started again since they were created",
            "Create the variables again and restore the last checkpoint"};
  }
  [[nodiscard, gnu::cold]] ServerUnavailable unavailable(const RpcError& error) const {
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
  std::optional<SharedMemoryClient> near_;  // constant once has_looked_for_near_ is set
};

/// One message with the pushes or pulls of several shards, and its reply. The client resends it after a lost
/// connection; the server applies it once. Arguments must stay valid until it is done. The destructor cancels it. If
/// the client can map the server's memory, `send` pushes or pulls there.
///
/// `wait` throws ServerUnavailable, StoreError or RpcError.
template <class T, class Request>
class PendingMessage {
  using RequestPart = typename Request::Part;
  static constexpr bool pulls = std::same_as<Request, PullRequest>;

 public:
  using Result = typename Request::Result;

  explicit PendingMessage(std::shared_ptr<Client<T>> client) : client_(std::move(client)) {}
  /// The client must outlive the message.
  explicit PendingMessage(Client<T>& client) : client_(std::shared_ptr<void>{}, &client) {}
  PendingMessage(const PendingMessage&) = delete;
  PendingMessage& operator=(const PendingMessage&) = delete;
  ~PendingMessage();

  /// The push or pull of one shard: a Future. Throws the errors of its message on each call, and InvalidArgument if
  /// that was not sent.
  class Part {
   public:
    /// A part without elements, which needs no message.
    Part() = default;
    explicit Part(std::shared_ptr<PendingMessage> message)
        : message_(std::move(message)), number_(message_->request().size() - 1) {}

    void wait() {
      if (message_) message_->wait();
    }
    [[nodiscard]] bool is_done() const { return !message_ || message_->is_done(); }
    /// The version of the pulled shard, which is the known one if it has not changed, or the result of the push. Valid
    /// once the part is done.
    [[nodiscard]] Result result() const { return message_ ? message_->results_[number_] : Request::of_nothing; }
    /// Keeps memory alive as long as the message.
    void keep(std::shared_ptr<const void> memory) {
      if (message_) message_->kept_.push_back(std::move(memory));
    }

   private:
    std::shared_ptr<PendingMessage> message_;
    std::size_t number_ = 0;
  };

  [[nodiscard]] const Client<T>* client() const noexcept { return &*client_; }
  [[nodiscard]] Request& request() noexcept { return request_; }

  /// Does not wait or throw.
  void send();
  void wait();
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
  std::vector<std::shared_ptr<const void>> kept_;  ///< memory that the request refers to
  std::span<const RequestPart> parts_;
  detail::Message message_;
  rpc::ChunkList pieces_;
  std::optional<detail::PullReply> pulled_;  ///< of the current attempt
  std::optional<typename T::Call> call_;     ///< the current attempt
  bool is_sent_ = false;
  std::exception_ptr failure_;
  std::vector<Result> results_;
};

template <class T, class Request>
PendingMessage<T, Request>::~PendingMessage() {
  if (!call_) return;
  call_->cancel();
  try {
    call_->wait();
  } catch (const RpcError&) {  // cancelled
  }
}

template <class T, class Request>
void PendingMessage<T, Request>::send() {
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

template <class T, class Request>
void PendingMessage<T, Request>::wait() {
  if (!is_sent_)
    throw InvalidArgument("A batch has no reply to wait for", "it was not sent",
                          "Call its send() before waiting for its pulls or pushes");
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

/// The clients of a process for all parameter servers of a job, each created on first use. Thread-safe.
template <class T>
class Clients {
 public:
  Clients(std::vector<net::Endpoint> servers, ClientOptions options)
      : endpoints_(std::move(servers)), options_(std::move(options)), clients_(endpoints_.size()) {}
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return endpoints_.size(); }
  [[nodiscard]] const std::vector<net::Endpoint>& endpoints() const noexcept { return endpoints_; }

  /// Returns the client of server `index` for variables created on this incarnation (Client::incarnation), and replaces
  /// it for another incarnation. Throws InvalidArgument if `index` is out of range.
  [[nodiscard]] std::shared_ptr<Client<T>> of(std::size_t index, std::uint64_t incarnation) {
    const std::lock_guard lock{mutex_};
    if (index >= clients_.size())
      throw InvalidArgument(concat("The job has no parameter server ", index), concat("it has ", clients_.size()),
                            "Use variables with the servers on which they were created");
    Cached& kept = clients_[index];
    if (!kept.client || kept.incarnation != incarnation) {
      ClientOptions options = options_;
      options.incarnation = incarnation;
      kept = {std::make_shared<Client<T>>(index, endpoints_[index], std::move(options)), incarnation};
    }
    return kept.client;
  }

 private:
  struct Cached {
    std::shared_ptr<Client<T>> client;
    std::uint64_t incarnation = 0;
  };

  const std::vector<net::Endpoint> endpoints_;
  const ClientOptions options_;
  std::mutex mutex_;
  std::vector<Cached> clients_;
};

}  // namespace dist::server
