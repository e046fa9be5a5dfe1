#pragma once

#if !__has_include(<grpc/grpc.h>)
#error "<grpc/grpc.h> of gRPC was not found: install libgrpc-dev, and link dist::grpc (without CMake: -lgrpc -lgpr)"
#endif

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>
#include <dist/net/certificate.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc_session.hpp>

/// The subset of gRPC's C core that calls of bytes need. This is the only header that includes <grpc/...>. It needs
/// neither generated code nor the C++ library nor Protocol Buffers.
namespace dist::grpc {

/// The maximum bytes in one message of a call, without its head. Longer data is split, because the core silently
/// truncates messages of 4 GiB or more; receivers reject longer messages.
inline constexpr std::size_t longest_message = std::size_t{16} << 20;

/// The maximum bytes in one message of a reply, small enough for a cache, because receivers may process it before the
/// next one arrives.
inline constexpr std::size_t longest_message_of_reply = std::size_t{1} << 20;

/// Data up to this size is copied instead of borrowed, so that its memory is released at once.
inline constexpr std::uint64_t longest_copied = 16384;

/// Keeps the core initialized. Its threads may run a little longer. A forked process has none of these threads, and the
/// core's locks in their state at the fork.
class Core {
 public:
  /// Throws InvalidArgument if the process was forked after the initialization of gRPC.
  Core() {
    refuse_after_fork();
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forked() = true; });
    static_cast<void>(registered);
    fill_standard_descriptors();
    grpc_init();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() {
    if (forked()) return;
    grpc_shutdown();
  }

  /// True if this process was forked after the initialization of gRPC. Then nothing, not even a destructor, may call
  /// the core.
  [[nodiscard]] static std::atomic<bool>& forked() {
    static std::atomic<bool> forked{false};
    return forked;
  }
  /// Throws InvalidArgument in a process that was forked after the core had started.
  static void refuse_after_fork() {
    if (forked())
      throw InvalidArgument("This process was forked after gRPC had started",
                            "the threads of gRPC are in its parent, and its locks may be held for ever",
                            "Fork before the first server or channel is made, or start the process with exec");
  }
};

/// The tag of a completion queue: the function that continues after a batch. For one batch at a time.
class Tag {
 public:
  using Advance = void (*)(void* owner, bool ok);

  /// For the next batch. The thread that gets the tag sees all earlier memory operations.
  [[nodiscard]] void* armed(void* owner, Advance advance) {
    advance_ = advance;
    owner_.store(owner, std::memory_order_release);
    return this;
  }
  static void done(const grpc_event& event) {
    const Tag& tag = *static_cast<const Tag*>(event.tag);
    void* const owner = tag.owner_.load(std::memory_order_acquire);
    tag.advance_(owner, event.success != 0);
  }

 private:
  Advance advance_ = nullptr;
  std::atomic<void*> owner_{nullptr};
};

/// Takes events from a queue, one thread at a time.
class Poller {
 public:
  /// Takes events from `queue`, which must outlive it.
  explicit Poller(grpc_completion_queue* queue) : queue_(queue) {}

  /// Returns the next event, or none after `until`. After a short wait, the next one polls for about the time to wake a
  /// thread, with yields, before it sleeps. Two alternating processes thus avoid sleeping, and a wait for a long
  /// transfer takes no time from computing threads.
  [[nodiscard]] grpc_event next(gpr_timespec until) {
    constexpr unsigned looks = 60;
    constexpr std::int64_t soon = 100'000;
    grpc_event event{};
    const auto look = [&] {
      event = grpc_completion_queue_next(queue_, gpr_time_0(GPR_CLOCK_MONOTONIC), nullptr);
      return event.type != GRPC_QUEUE_TIMEOUT;
    };
    if (detail::look_within({0, came_soon_ ? looks : 0}, look)) return event;
    const std::int64_t begin = detail::monotonic_nanoseconds();
    event = grpc_completion_queue_next(queue_, until, nullptr);
    came_soon_ = detail::monotonic_nanoseconds() - begin < soon;
    return event;
  }

 private:
  grpc_completion_queue* const queue_;
  bool came_soon_ = true;
};

/// A list of metadata for the core to fill in; unused.
class Metadata {
 public:
  Metadata() { grpc_metadata_array_init(&array_); }
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;
  ~Metadata() { grpc_metadata_array_destroy(&array_); }
  [[nodiscard]] grpc_metadata_array* get() { return &array_; }

 private:
  grpc_metadata_array array_;
};

/// The deleter for objects of the core.
struct Destroyer {
  void operator()(grpc_byte_buffer* buffer) const { grpc_byte_buffer_destroy(buffer); }
  void operator()(grpc_call* call) const { grpc_call_unref(call); }
  void operator()(grpc_channel* channel) const { grpc_channel_destroy(channel); }
};
/// An owning pointer to a message.
using Buffer = std::unique_ptr<grpc_byte_buffer, Destroyer>;
/// An owning pointer to a call.
using CallPointer = std::unique_ptr<grpc_call, Destroyer>;
/// An owning pointer to a channel.
using ChannelPointer = std::unique_ptr<grpc_channel, Destroyer>;

/// Returns the bytes of a slice, which must outlive the view.
[[nodiscard]] inline std::string_view view(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

/// Memory that the core borrows. Calls `freed` in any thread, once the core and the owner of this object have released
/// it.
class Borrowed {
 public:
  /// Calls `freed(owner)` at the end.
  Borrowed(void (*freed)(void*), void* owner) : freed_(freed), owner_(owner) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  /// Returns a slice that refers to `piece`, for one message.
  [[nodiscard]] grpc_slice slice(rpc::Chunk piece) {
    users_.fetch_add(1, std::memory_order_relaxed);
    return grpc_slice_new_with_user_data(
        const_cast<std::byte*>(piece.data()), piece.size(), [](void* lent) { static_cast<Borrowed*>(lent)->release(); },
        this);
  }
  /// Releases the owner's use, once.
  void release() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) freed_(owner_);
  }

 private:
  void (*const freed_)(void*);
  void* const owner_;
  std::atomic<std::size_t> users_{1};
};

/// The bytes of a request or reply, split into messages. The first message begins with the head.
class Sender {
 public:
  Sender() = default;
  /// `lent` must outlive the messages, of at most `longest` bytes; null: the bytes are copied.
  Sender(std::vector<std::byte> head, rpc::ChunkSpan pieces, Borrowed* lent, std::size_t longest)
      : head_(std::move(head)), pieces_(pieces.begin(), pieces.end()), lent_(lent), longest_(longest) {
    std::erase_if(pieces_, [](rpc::Chunk piece) { return piece.empty(); });
  }

  /// True if everything was sent.
  [[nodiscard]] bool finished() const { return head_.empty() && at_ == pieces_.size(); }
  /// Returns the next message.
  [[nodiscard]] Buffer next() {
    std::vector<grpc_slice> slices;
    if (!head_.empty()) slices.push_back(copied(std::exchange(head_, {})));
    for (std::size_t room = longest_; room != 0 && at_ != pieces_.size();) {
      rpc::Chunk& piece = pieces_[at_];
      const rpc::Chunk part = piece.first(std::min(room, piece.size()));
      slices.push_back(lent_ == nullptr ? copied(part) : lent_->slice(part));
      room -= part.size();
      piece = piece.subspan(part.size());
      if (piece.empty()) ++at_;
    }
    Buffer message{grpc_raw_byte_buffer_create(slices.data(), slices.size())};
    for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
    return message;
  }

 private:
  [[nodiscard]] static grpc_slice copied(rpc::Chunk bytes) {
    return grpc_slice_from_copied_buffer(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::vector<std::byte> head_;
  std::vector<rpc::Chunk> pieces_;
  std::size_t at_ = 0;
  Borrowed* lent_ = nullptr;
  std::size_t longest_ = longest_message;
};

/// A received request or reply in the core's memory.
class Received {
 public:
  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() { clear(); }

  /// Removes the bytes and the count.
  void clear() {
    drop_pieces();
    size_ = 0;
  }
  /// Appends the bytes of a message, without a copy.
  void add(grpc_byte_buffer* message) {
    grpc_byte_buffer_reader reader;
    if (grpc_byte_buffer_reader_init(&reader, message) == 0) return;
    grpc_slice slice;
    while (grpc_byte_buffer_reader_next(&reader, &slice) != 0) {
      slices_.push_back(slice);
      pieces_.push_back(
          {reinterpret_cast<const std::byte*>(GRPC_SLICE_START_PTR(slices_.back())), GRPC_SLICE_LENGTH(slice)});
      size_ += GRPC_SLICE_LENGTH(slice);
    }
    grpc_byte_buffer_reader_destroy(&reader);
  }
  /// Passes the bytes to a sink. They still count as received.
  void give_to(rpc::ReplySink& sink) {
    for (const rpc::Chunk piece : pieces_) sink.take(piece);
    drop_pieces();
  }
  /// The number of received bytes, including bytes passed to a sink.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The bytes that are still here, in order.
  [[nodiscard]] rpc::ChunkSpan pieces() const { return pieces_; }
  /// Returns a copy of the first bytes, at most `longest`.
  [[nodiscard]] std::vector<std::byte> front(std::size_t longest) const {
    std::vector<std::byte> bytes;
    for (const rpc::Chunk piece : pieces_) {
      const rpc::Chunk part = piece.first(std::min(longest - bytes.size(), piece.size()));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }
  /// Removes the first `count` bytes.
  void drop_front(std::size_t count) {
    size_ -= count;
    for (rpc::Chunk& piece : pieces_) {
      const std::size_t part = std::min(count, piece.size());
      piece = piece.subspan(part);
      count -= part;
    }
    std::erase_if(pieces_, [](rpc::Chunk piece) { return piece.empty(); });
  }

 private:
  void drop_pieces() {
    for (const grpc_slice& slice : slices_) grpc_slice_unref(slice);
    slices_.clear();
    pieces_.clear();
  }

  std::deque<grpc_slice> slices_;  // a deque, because short slices store their bytes inline and must not move
  std::vector<rpc::Chunk> pieces_;
  std::uint64_t size_ = 0;
};

/// Removes the head from the received bytes. Returns nothing if the head is missing. Throws FrameError.
template <class Head>
[[nodiscard]] std::optional<Head> take_head(Received& received) {
  std::size_t used = 0;
  const std::optional<net::Frame> frame = net::parse_frame(received.front(rpc::longest_head), rpc::longest_head, used);
  if (!frame) return std::nullopt;
  std::optional<Head> head = Head::from(*frame);
  received.drop_front(used);
  return head;
}

/// A batch of operations that the core starts together.
class Batch {
 public:
  Batch& send_head(std::uint32_t flags = 0) {
    add(GRPC_OP_SEND_INITIAL_METADATA).flags = flags;
    return *this;
  }
  Batch& send(const Buffer& message) {
    add(GRPC_OP_SEND_MESSAGE).data.send_message.send_message = message.get();
    return *this;
  }
  Batch& end_request() { return add(GRPC_OP_SEND_CLOSE_FROM_CLIENT), *this; }
  Batch& receive_head(Metadata& metadata) {
    add(GRPC_OP_RECV_INITIAL_METADATA).data.recv_initial_metadata.recv_initial_metadata = metadata.get();
    return *this;
  }
  Batch& receive(grpc_byte_buffer*& message) {
    add(GRPC_OP_RECV_MESSAGE).data.recv_message.recv_message = &message;
    return *this;
  }
  Batch& receive_status(Metadata& metadata, grpc_status_code& status, grpc_slice& details) {
    auto& data = add(GRPC_OP_RECV_STATUS_ON_CLIENT).data.recv_status_on_client;
    data.trailing_metadata = metadata.get();
    data.status = &status;
    data.status_details = &details;
    return *this;
  }
  Batch& receive_close(int& cancelled) {
    add(GRPC_OP_RECV_CLOSE_ON_SERVER).data.recv_close_on_server.cancelled = &cancelled;
    return *this;
  }
  Batch& end_reply() {
    add(GRPC_OP_SEND_STATUS_FROM_SERVER).data.send_status_from_server.status = GRPC_STATUS_OK;
    return *this;
  }
  /// Returns false if the call has ended.
  [[nodiscard]] bool start(grpc_call* call, void* tag) const {
    return grpc_call_start_batch(call, operations_, count_, tag, nullptr) == GRPC_CALL_OK;
  }

 private:
  grpc_op& add(grpc_op_type type) {
    grpc_op& operation = operations_[count_++];
    std::memset(&operation, 0, sizeof operation);
    operation.op = type;
    return operation;
  }

  grpc_op operations_[6];
  std::size_t count_ = 0;
};

/// Returns an option with a number.
[[nodiscard]] inline grpc_arg argument(const char* key, std::int64_t value) {
  grpc_arg argument{};
  argument.type = GRPC_ARG_INTEGER;
  argument.key = const_cast<char*>(key);
  argument.value.integer = static_cast<int>(std::min<std::int64_t>(value, 1 << 30));
  return argument;
}
/// Returns an option with a text, which must outlive it.
[[nodiscard]] inline grpc_arg argument(const char* key, const std::string& value) {
  grpc_arg argument{};
  argument.type = GRPC_ARG_STRING;
  argument.key = const_cast<char*>(key);
  argument.value.string = const_cast<char*>(value.c_str());
  return argument;
}
/// Returns the options of channels and servers. `silence` is the time without data after which a peer is lost: mostly
/// the timeout of a ping, so that shorter pauses are tolerated whenever they begin.
[[nodiscard]] inline std::vector<grpc_arg> arguments(net::Milliseconds silence) {
  const std::int64_t ping = std::max<std::int64_t>(10, silence.count() / 6);
  constexpr std::int64_t longest = longest_message + rpc::longest_head;
  return {
      argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, longest), argument(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, longest),
      // Avoids splitting large messages into frames of 16 KiB, the default.
      argument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1), argument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20),
      argument(GRPC_ARG_KEEPALIVE_TIME_MS, ping), argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, silence.count() - ping),
      argument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1), argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
      argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1), argument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
      argument(GRPC_ARG_ENABLE_RETRIES, 0), argument(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
      argument(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1), argument(GRPC_ARG_ALLOW_REUSEPORT, 0)};
}
/// Returns the options of a channel. `options` must outlive the list. The core lengthens pauses at random by up to a
/// fifth.
[[nodiscard]] inline std::vector<grpc_arg> arguments(const rpc::ChannelOptions& options) {
  std::vector<grpc_arg> list = arguments(options.silence);
  const std::int64_t longest = std::max<std::int64_t>(1, options.reconnect.count() * 5 / 6);
  list.push_back(argument(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, std::min<std::int64_t>(50, longest)));
  list.push_back(argument(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, longest));
  // Despite its name, the time limit of a connection and its handshake.
  list.push_back(argument(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, options.silence.count()));
  list.push_back(argument(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1));
  if (!options.tls.server_name.empty())
    list.push_back(argument(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, options.tls.server_name));
  return list;
}

/// True if a connection ended because pings or data got no reply, according to the text of the core.
[[nodiscard, gnu::cold]] inline bool was_silent(std::string_view details) {
  return details.find("keepalive watchdog timeout") != std::string_view::npos ||
         details.find("Connection timed out") != std::string_view::npos;
}

/// Returns the deadline of a timeout; 0: no limit.
[[nodiscard]] inline gpr_timespec deadline_in(std::chrono::nanoseconds timeout) {
  if (timeout.count() == 0) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout.count(), GPR_TIMESPAN));
}

}  // namespace dist::grpc

/// Encryption of gRPC connections: mutual TLS if the job has certificates.
namespace dist::grpc {

struct CredentialsReleaser {
  void operator()(grpc_channel_credentials* credentials) const { grpc_channel_credentials_release(credentials); }
  void operator()(grpc_server_credentials* credentials) const { grpc_server_credentials_release(credentials); }
};
using ChannelCredentials = std::unique_ptr<grpc_channel_credentials, CredentialsReleaser>;
using ServerCredentials = std::unique_ptr<grpc_server_credentials, CredentialsReleaser>;

/// Returns the credentials of a channel. Throws like net::read_identity.
[[nodiscard]] inline ChannelCredentials channel_credentials(const net::TlsFiles& files) {
  if (files.empty()) return ChannelCredentials{grpc_insecure_credentials_create()};
  const net::TlsIdentity own = net::read_identity(files, net::TlsRole::client);
  grpc_ssl_pem_key_cert_pair pair{own.key.c_str(), own.certificate.c_str()};
  return ChannelCredentials{grpc_ssl_credentials_create_ex(own.authorities.c_str(), &pair, nullptr, nullptr)};
}
/// Returns the credentials of a server, which rejects clients without a certificate of the job. Throws like
/// net::read_identity.
[[nodiscard]] inline ServerCredentials server_credentials(const net::TlsFiles& files) {
  if (files.empty()) return ServerCredentials{grpc_insecure_server_credentials_create()};
  const net::TlsIdentity own = net::read_identity(files, net::TlsRole::server);
  grpc_ssl_pem_key_cert_pair pair{own.key.c_str(), own.certificate.c_str()};
  return ServerCredentials{grpc_ssl_server_credentials_create_ex(
      own.authorities.c_str(), &pair, 1, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, nullptr)};
}

/// Returns the reason why this process rejects a server's certificate, if the core reports that.
[[nodiscard, gnu::cold]] inline std::optional<std::string> distrust(std::string_view details,
                                                                    const net::TlsFiles& files) {
  const auto says = [&](std::string_view words) { return details.find(words) != std::string_view::npos; };
  if (says("is not in peer certificate"))
    return concat(
        "its certificate is for another host: list tasks by the names in their certificates, or set "
        "DIST_TLS_SERVER_NAME to a name that all certificates have; ",
        details);
  if (!says("Ssl handshake failed")) return std::nullopt;
  if (says("certificate verify failed"))
    return concat("its certificate is not signed by an authority in ", files.authorities, ", or is out of date; ",
                  details);
  if (says("wrong version number"))
    return concat("it does not use TLS: start all tasks of the job with certificates (DIST_TLS_CERT_FILE); ", details);
  return concat("the TLS handshake with it failed; ", details);
}
/// Describes a failed connection, with the likely cause if the server closed it: servers do not report why they reject
/// a client.
[[nodiscard, gnu::cold]] inline std::string failed_connection(std::string_view details, const net::TlsFiles& files) {
  std::string why{details};
  if (details.find("failed to connect") == std::string_view::npos ||
      details.find("Socket closed") == std::string_view::npos)
    return why;
  return concat(why, files.empty() ? ": if the server requires TLS, this task needs certificates (DIST_TLS_CERT_FILE)"
                                   : concat(": the server may have rejected the certificate in ", files.certificate));
}

}  // namespace dist::grpc
