#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/frame.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc.hpp>

namespace dist {

/// Options of a KeyValueStore.
struct KeyValueOptions {
  net::Endpoint keeper;            ///< address at which process 0 serves the values, the same in every process
  std::size_t process = 0;         ///< index of this process
  std::vector<std::string> hosts;  ///< hosts of all processes, by index
  /// The time limit for the start of process 0, for calls without another limit.
  net::Milliseconds timeout{300'000};
  std::string secret = net::job_secret();  ///< of the job; empty: no authentication
  net::TlsFiles tls = net::job_tls();      ///< certificates of this task; none: no encryption
};

namespace detail {

inline constexpr std::string_view get_value_method = "key_values.get";
inline constexpr std::string_view put_value_method = "key_values.put";
inline constexpr std::string_view absent_method = "key_values.absent";

/// The beginning of requests for a value.
struct ValueRequest {
  std::size_t process = 0, processes = 0;  ///< index of the sender, and number of processes
  std::string key;

  static constexpr std::size_t longest_key = 65'536;

  [[nodiscard]] net::RecordWriter record() const {
    net::RecordWriter writer;
    writer.number(std::uint64_t{process}).number(std::uint64_t{processes}).string(key);
    return writer;
  }
  [[nodiscard]] static ValueRequest from(net::RecordReader& reader) {
    ValueRequest request;
    request.process = reader.number<std::uint64_t>();
    request.processes = reader.number<std::uint64_t>();
    request.key = reader.string(longest_key);
    return request;
  }
};

[[nodiscard]] inline std::vector<std::byte> bytes_of(const net::RecordWriter& record) {
  return {record.content().begin(), record.content().end()};
}

/// The server in process 0: the values, and pending requests. Must outlive the rpc::Server.
template <rpc::Exchange Exchange>
class KeyValueKeeper {
 public:
  explicit KeyValueKeeper(std::size_t processes) : has_come_(processes, false) {}

  [[nodiscard]] std::vector<rpc::Method<Exchange>> methods() {
    return {{std::string{get_value_method}, [this](Exchange& exchange) { get(exchange); }},
            {std::string{put_value_method}, [this](Exchange& exchange) { put(exchange); }},
            {std::string{absent_method}, [this](Exchange& exchange) { tell_absent(exchange); }}};
  }

 private:
  struct Value {
    std::size_t from;  ///< process that has put it
    std::vector<std::byte> bytes;
  };

  /// Replies with a flag and the value, if any. A request may wait for the value.
  void get(Exchange& exchange) {
    const std::vector<std::byte> asked = rpc::joined(exchange.pieces());
    net::RecordReader reader{asked};
    const ValueRequest request = ValueRequest::from(reader);
    const bool waits = reader.number<std::uint8_t>() != 0;
    reader.expect_end();
    const std::lock_guard lock{mutex_};
    note(request);
    if (const auto found = values_.find(request.key); found != values_.end()) return answer(exchange, found->second);
    if (!waits) return exchange.reply(bytes_of(net::RecordWriter{}.number(std::uint8_t{0})));
    std::erase_if(waiting_, [](const auto& entry) { return entry.second.cancelled(); });
    waiting_.emplace(request.key, exchange.keep());
  }
  /// Replies with the process of the stored value, and whether it equals the given value.
  void put(Exchange& exchange) {
    const std::vector<std::byte> asked = rpc::joined(exchange.pieces());
    net::RecordReader reader{asked};
    const ValueRequest request = ValueRequest::from(reader);
    const rpc::Chunk bytes = reader.bytes();
    reader.expect_end();
    Value given{request.process, {bytes.begin(), bytes.end()}};
    const std::lock_guard lock{mutex_};
    note(request);
    const auto found = values_.try_emplace(request.key, given).first;
    const bool stands = found->second.bytes == given.bytes;
    exchange.reply(bytes_of(net::RecordWriter{}
                                .number(std::uint64_t{found->second.from})
                                .number(static_cast<std::uint8_t>(stands ? 1 : 0))));
    const auto [first, last] = waiting_.equal_range(request.key);
    for (auto each = first; each != last; ++each) answer(each->second, found->second);
    waiting_.erase(first, last);
  }
  /// Replies with the processes without requests.
  void tell_absent(Exchange& exchange) {
    net::RecordWriter absent;
    const std::lock_guard lock{mutex_};
    for (std::size_t process = 0; process < has_come_.size(); ++process)
      if (!has_come_[process]) absent.number(std::uint64_t{process});
    exchange.reply(bytes_of(absent));
  }

  static void answer(Exchange& exchange, const Value& value) {
    exchange.reply(bytes_of(net::RecordWriter{}.number(std::uint8_t{1}).bytes(value.bytes)));
  }
  /// Requires `mutex_`.
  void note(const ValueRequest& request) {
    if (request.processes != has_come_.size() || request.process >= has_come_.size())
      throw InvalidArgument("Processes disagree on the number of processes",
                            concat("process 0 counts ", has_come_.size(), ", and process ", request.process, " counts ",
                                   request.processes),
                            "Give all processes the same list of hosts");
    has_come_[request.process] = true;
  }

  std::mutex mutex_;
  std::map<std::string, Value> values_;
  std::multimap<std::string, Exchange> waiting_;
  std::vector<bool> has_come_;
};

}  // namespace detail

/// A key-value store for the processes of a job, to exchange data before they can compute together, such as the
/// addresses of devices. Each key is put once, and any process can get it at any time. Process 0 stores the values.
/// Thread-safe. Calls use `Transport`, such as dist::Grpc.
///
/// Calls throw RpcError if process 0 rejects them, and Unavailable if it is lost.
template <rpc::Transport Transport>
class KeyValueStore {
 public:
  /// In process 0, listens on return; in the others, calls wait for it. Throws InvalidArgument if `process` is not an
  /// index of `hosts`, and RendezvousError if process 0 cannot listen.
  explicit KeyValueStore(KeyValueOptions options)
      : options_(validated(std::move(options))),
        keeper_(options_.hosts.size()),
        channel_(options_.keeper, {.secret = options_.secret, .tls = options_.tls}) {
    if (options_.process == 0)
      server_.emplace(options_.keeper, rpc::ServerOptions{.secret = options_.secret, .tls = options_.tls},
                      keeper_.methods());
  }
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  [[nodiscard]] std::size_t process() const noexcept { return options_.process; }
  [[nodiscard]] std::size_t processes() const noexcept { return options_.hosts.size(); }

  /// Waits for the value of the key. Throws DeadlineExceeded after `timeout`, with the missing processes.
  [[nodiscard]] std::string get(std::string_view key, net::Milliseconds timeout) {
    return asked(key, true, timeout).value_or("");
  }
  /// Returns the value of the key, if any. Throws DeadlineExceeded if process 0 does not start in time.
  [[nodiscard]] std::optional<std::string> try_get(std::string_view key) { return asked(key, false, options_.timeout); }
  /// Stores a value. Throws InvalidArgument if the key has another value already, and DeadlineExceeded if process 0
  /// does not start in time.
  void put(std::string_view key, std::string_view value) {
    net::RecordWriter request = this->request(key);
    request.string(value);
    const std::vector<std::byte> reply = call(detail::put_value_method, request, key, options_.timeout);
    net::RecordReader reader{reply};
    const std::size_t from = reader.number<std::uint64_t>();
    if (reader.number<std::uint8_t>() == 0)
      throw InvalidArgument(concat("The key ", quoted(key), " is put twice, with different values"),
                            concat(name(from), " was first"), "Give each process its own keys");
  }

 private:
  [[nodiscard]] static KeyValueOptions validated(KeyValueOptions options) {
    if (options.process >= options.hosts.size())
      throw InvalidArgument("A process cannot share values with others",
                            concat("it is process ", options.process, ", and the list has ", options.hosts.size(),
                                   options.hosts.size() == 1 ? " host" : " hosts"),
                            "Name the host of every process, and number the processes from 0");
    return options;
  }

  [[nodiscard]] net::RecordWriter request(std::string_view key) const {
    return detail::ValueRequest{process(), processes(), std::string{key}}.record();
  }
  [[nodiscard]] std::optional<std::string> asked(std::string_view key, bool waits, net::Milliseconds timeout) {
    net::RecordWriter request = this->request(key);
    request.number(static_cast<std::uint8_t>(waits ? 1 : 0));
    const std::vector<std::byte> reply = call(detail::get_value_method, request, key, timeout);
    net::RecordReader reader{reply};
    if (reader.number<std::uint8_t>() == 0) return std::nullopt;
    const rpc::Chunk value = reader.bytes();
    return std::string{reinterpret_cast<const char*>(value.data()), value.size()};
  }
  std::vector<std::byte> call(std::string_view method, const net::RecordWriter& request, std::string_view key,
                              net::Milliseconds timeout) {
    const rpc::Chunk pieces[] = {request.content()};
    timeout = std::max(timeout, net::Milliseconds{1});  // a call with timeout 0 has no limit
    try {
      return rpc::joined(channel_.call(method, pieces, {timeout, true}).pieces());
    } catch (const RpcError& error) {
      if (error.failure() == rpc::Failure::deadline) fail_late(key, timeout);
      if (error.failure() == rpc::Failure::lost)
        throw Unavailable(0, options_.hosts[0], concat(error.why(), ", while the key ", quoted(key), " was requested"),
                          "See why it ended, and start all processes again");
      throw;
    }
  }
  [[noreturn]] void fail_late(std::string_view key, net::Milliseconds waited) {
    std::vector<std::size_t> absent;
    try {
      constexpr net::Milliseconds longest{2'000};
      const std::vector<std::byte> reply = rpc::joined(channel_.call(detail::absent_method, {}, {longest}).pieces());
      for (net::RecordReader reader{reply}; !reader.empty();) absent.push_back(reader.number<std::uint64_t>());
    } catch (const RpcError&) {
      throw DeadlineExceeded(concat(name(0), ", which stores the values of all processes, did not arrive at ",
                                    to_string(options_.keeper), " within ", waited),
                             concat("the key ", quoted(key), " was requested"),
                             "Start it with the same address, and check that no firewall blocks the port");
    }
    constexpr std::size_t most = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(absent.size(), most); ++i)
      names += concat(i == 0 ? "" : ", ", name(absent[i]));
    if (absent.size() > most) names += concat(" and ", absent.size() - most, " more");
    throw DeadlineExceeded(concat("No process has put the key ", quoted(key), " within ", waited),
                           absent.empty() ? concat("all ", processes(), " processes have arrived")
                                          : concat(names, absent.size() == 1 ? " has" : " have", " not arrived"),
                           absent.empty() ? "Check what prevents them from putting it"
                                          : "Start all processes, with the same list of hosts");
  }
  [[nodiscard]] std::string name(std::size_t process) const {
    return concat("process ", process, " on host ", quoted(options_.hosts[process]));
  }

  const KeyValueOptions options_;
  detail::KeyValueKeeper<typename Transport::Exchange> keeper_;  ///< in process 0
  std::optional<typename Transport::Server> server_;
  typename Transport::Channel channel_;
};

}  // namespace dist
