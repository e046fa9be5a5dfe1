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
#include <dist/device/wait.hpp>
#include <dist/rpc/rpc_session.hpp>

/// The C core of gRPC, as far as calls of bytes need it: the one header that includes <grpc/...>. No code is generated, and
/// the C++ library and Protocol Buffers are not needed.
namespace dist::grpc {

/// A call's bytes go in messages of at most so many, because the core cuts a message of 4 GiB or more without a word. A
/// receiver that sees a longer one ends the call. The head before the bytes comes on top.
inline constexpr std::size_t longest_message = std::size_t{16} << 20;

/// Of a reply, which its receiver may take out of the way before the next one comes: few enough to stay in a cache.
inline constexpr std::size_t longest_message_of_reply = std::size_t{1} << 20;

/// What is not longer is copied rather than lent, which lets go of the memory at once.
inline constexpr std::uint64_t longest_copied = 16384;

/// The core in use. It has threads of its own, of which the last may run a little longer. A process that was forked after the
/// first use has none of these threads, and the core's locks as they were at that moment.
class Core {
 public:
  /// Throws InvalidArgument in a process that was forked after gRPC had started.
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

  /// Whether this process was forked after gRPC had started: nothing of the core may be called, also by destructors.
  [[nodiscard]] static std::atomic<bool>& forked() {
    static std::atomic<bool> forked{false};
    return forked;
  }
  static void refuse_after_fork() {
    if (forked())
      throw InvalidArgument("This process was forked after gRPC had started",
                            "the threads of gRPC are in its parent, and its locks may be held for ever",
                            "Fork before the first server or channel is made, or start the process with exec");
  }
};

/// What a completion queue gives back: who goes on. Of one batch at a time.
class Tag {
 public:
  using Advance = void (*)(void* owner, bool ok);

  /// For the batch that is started next. The thread that gets the tag sees all that happened before.
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

/// Takes the events off a queue, one thread at a time.
class Poller {
 public:
  explicit Poller(grpc_completion_queue* queue) : queue_(queue) {}

  /// The next event, or none after that time. Where the last one came soon, it looks for about as long as it takes to wake a thread
  /// before it sleeps, and lets others run meanwhile. So of two processes that take turns neither sleeps because the other one was
  /// late, and who waits for a long transfer takes no time from those that compute.
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

/// A list of metadata that the core fills in. None is used.
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

/// Destroys what the core made.
struct Destroyer {
  void operator()(grpc_byte_buffer* buffer) const { grpc_byte_buffer_destroy(buffer); }
  void operator()(grpc_call* call) const { grpc_call_unref(call); }
  void operator()(grpc_channel* channel) const { grpc_channel_destroy(channel); }
};
using Buffer = std::unique_ptr<grpc_byte_buffer, Destroyer>;
using CallPointer = std::unique_ptr<grpc_call, Destroyer>;
using ChannelPointer = std::unique_ptr<grpc_channel, Destroyer>;

[[nodiscard]] inline std::string_view view(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

/// Memory of somebody that the core reads: `freed` is called once neither the core nor the holder of this object does, in
/// any thread.
class Borrowed {
 public:
  Borrowed(void (*freed)(void*), void* owner) : freed_(freed), owner_(owner) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  [[nodiscard]] grpc_slice slice(rpc::Chunk piece) {
    users_.fetch_add(1, std::memory_order_relaxed);
    return grpc_slice_new_with_user_data(
        const_cast<std::byte*>(piece.data()), piece.size(), [](void* lent) { static_cast<Borrowed*>(lent)->release(); },
        this);
  }
  /// The holder's own use, once.
  void release() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) freed_(owner_);
  }

 private:
  void (*const freed_)(void*);
  void* const owner_;
  std::atomic<std::size_t> users_{1};
};

/// The bytes of a request or reply, message by message. The first has the head before the bytes.
class Sender {
 public:
  Sender() = default;
  /// `lent` outlives the messages, of at most `longest` bytes. Without it the bytes are copied.
  Sender(std::vector<std::byte> head, rpc::ChunkSpan pieces, Borrowed* lent, std::size_t longest)
      : head_(std::move(head)), pieces_(pieces.begin(), pieces.end()), lent_(lent), longest_(longest) {
    std::erase_if(pieces_, [](rpc::Chunk piece) { return piece.empty(); });
  }

  /// Nothing is left to send.
  [[nodiscard]] bool finished() const { return head_.empty() && at_ == pieces_.size(); }
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

/// What has come of a request or a reply, in the memory in which the core received it.
class Received {
 public:
  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() { clear(); }

  void clear() {
    drop_pieces();
    size_ = 0;
  }
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
  /// Gives the bytes away. They still count as received.
  void give_to(rpc::ReplySink& sink) {
    for (const rpc::Chunk piece : pieces_) sink.take(piece);
    drop_pieces();
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] rpc::ChunkSpan pieces() const { return pieces_; }
  /// A copy of the first bytes.
  [[nodiscard]] std::vector<std::byte> front(std::size_t longest) const {
    std::vector<std::byte> bytes;
    for (const rpc::Chunk piece : pieces_) {
      const rpc::Chunk part = piece.first(std::min(longest - bytes.size(), piece.size()));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }
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

  std::deque<grpc_slice> slices_;  // stays where it is: short ones hold their bytes themselves
  std::vector<rpc::Chunk> pieces_;
  std::uint64_t size_ = 0;
};

/// Takes the head off the front of what was received; nothing where there is none. Throws FrameError.
template <class Head>
[[nodiscard]] std::optional<Head> take_head(Received& received) {
  std::size_t used = 0;
  const std::optional<net::Frame> frame = net::parse_frame(received.front(rpc::longest_head), rpc::longest_head, used);
  if (!frame) return std::nullopt;
  std::optional<Head> head = Head::from(*frame);
  received.drop_front(used);
  return head;
}

/// The operations of a batch, which are on their way together.
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
  /// False where the core takes none, which it says of calls that are over.
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

/// An option of the core.
[[nodiscard]] inline grpc_arg argument(const char* key, std::int64_t value) {
  grpc_arg argument{};
  argument.type = GRPC_ARG_INTEGER;
  argument.key = const_cast<char*>(key);
  argument.value.integer = static_cast<int>(std::min<std::int64_t>(value, 1 << 30));
  return argument;
}
/// The same with a text, which outlives it.
[[nodiscard]] inline grpc_arg argument(const char* key, const std::string& value) {
  grpc_arg argument{};
  argument.type = GRPC_ARG_STRING;
  argument.key = const_cast<char*>(key);
  argument.value.string = const_cast<char*>(value.c_str());
  return argument;
}
/// Options of the core for channels and servers. `silence`: of a peer, until it counts as lost. Most of it is time for the answer
/// to a ping, so that a peer that stands still for a little less is not lost, whenever that begins.
[[nodiscard]] inline std::vector<grpc_arg> arguments(net::Milliseconds silence) {
  const std::int64_t ping = std::max<std::int64_t>(10, silence.count() / 6);
  constexpr std::int64_t longest = longest_message + rpc::longest_head;
  return {
      argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, longest), argument(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, longest),
      // Large messages would be many frames of 16 KiB, the default.
      argument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1), argument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20),
      argument(GRPC_ARG_KEEPALIVE_TIME_MS, ping), argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, silence.count() - ping),
      argument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1), argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
      argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1), argument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
      argument(GRPC_ARG_ENABLE_RETRIES, 0), argument(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
      argument(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1), argument(GRPC_ARG_ALLOW_REUSEPORT, 0)};
}
/// Those of a channel, whose options outlive the list. The core pauses for up to a fifth longer than it is told, by chance.
[[nodiscard]] inline std::vector<grpc_arg> arguments(const rpc::ChannelOptions& options) {
  std::vector<grpc_arg> list = arguments(options.silence);
  const std::int64_t longest = std::max<std::int64_t>(1, options.reconnect.count() * 5 / 6);
  list.push_back(argument(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, std::min<std::int64_t>(50, longest)));
  list.push_back(argument(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, longest));
  // The time for a connection and its handshake, whatever its name says.
  list.push_back(argument(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, options.silence.count()));
  list.push_back(argument(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1));
  if (!options.tls.server_name.empty())
    list.push_back(argument(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, options.tls.server_name));
  return list;
}

/// True if a connection ended because pings or data had no answer, according to the core's text.
[[nodiscard]] inline bool was_silent(std::string_view details) {
  return details.find("keepalive watchdog timeout") != std::string_view::npos ||
         details.find("Connection timed out") != std::string_view::npos;
}

[[nodiscard]] inline gpr_timespec deadline_in(std::chrono::nanoseconds timeout) {
  if (timeout.count() == 0) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout.count(), GPR_TIMESPAN));
}

}  // namespace dist::grpc
