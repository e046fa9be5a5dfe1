/// A gRPC call with arbitrary messages, like a call from a foreign program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <dist/rpc/grpc/api.hpp>

namespace dist_test {

struct RawAnswer {
  grpc_status_code status;
  std::vector<std::byte> bytes;  ///< of the first message
};

/// Sends the messages, ends the request if `end` is set, and waits up to 10 s for a message and the status.
inline RawAnswer raw_call(const std::string& address, const char* path,
                          const std::vector<std::vector<std::byte>>& messages, bool end = true) {
  using namespace dist::grpc;
  const Core core;
  grpc_arg unlimited{};
  unlimited.type = GRPC_ARG_INTEGER;
  unlimited.key = const_cast<char*>(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH);
  unlimited.value.integer = -1;
  const grpc_channel_args arguments{1, &unlimited};
  grpc_channel_credentials* const credentials = grpc_insecure_credentials_create();
  ChannelPointer channel{grpc_channel_create(address.c_str(), credentials, &arguments)};
  grpc_channel_credentials_release(credentials);
  grpc_completion_queue* const queue = grpc_completion_queue_create_for_pluck(nullptr);
  RawAnswer answer{};
  {
    CallPointer call{grpc_channel_create_call(channel.get(), nullptr, GRPC_PROPAGATE_DEFAULTS, queue,
                                              grpc_slice_from_static_string(path), nullptr,
                                              deadline_in(std::chrono::seconds{10}), nullptr)};
    Metadata metadata, trailing;
    grpc_byte_buffer* received = nullptr;
    grpc_slice details = grpc_empty_slice();
    int at_end = 0, at_start = 0;
    const auto pluck = [&](void* tag) {
      return grpc_completion_queue_pluck(queue, tag, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).success != 0;
    };
    const auto run = [&](const Batch& batch, void* tag) { return batch.start(call.get(), tag) && pluck(tag); };
    const bool waits = Batch{}.receive_status(trailing, answer.status, details).start(call.get(), &at_end);
    bool going = run(Batch{}.send_head(GRPC_INITIAL_METADATA_WAIT_FOR_READY), &at_start);
    for (const std::vector<std::byte>& bytes : messages) {
      grpc_slice slice = grpc_slice_from_copied_buffer(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const Buffer message{grpc_raw_byte_buffer_create(&slice, 1)};
      grpc_slice_unref(slice);
      going = going && run(Batch{}.send(message), &at_start);
    }
    if (end && going) static_cast<void>(run(Batch{}.end_request(), &at_start));
    static_cast<void>(run(Batch{}.receive_head(metadata).receive(received), &at_start));
    if (waits) pluck(&at_end);
    grpc_slice_unref(details);
    if (received != nullptr) {
      Received all;
      all.add(received);
      answer.bytes = all.front(1 << 20);
      grpc_byte_buffer_destroy(received);
    }
  }
  grpc_completion_queue_shutdown(queue);
  grpc_completion_queue_destroy(queue);
  return answer;
}

/// Returns the /proc folders of this process's threads with that name.
inline std::vector<std::filesystem::path> folders_of_threads(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::string comm;
    std::getline(std::ifstream{entry.path() / "comm"}, comm);
    if (comm == name) folders.push_back(entry.path());
  }
  return folders;
}
inline std::size_t threads_named(const std::string& name) { return folders_of_threads(name).size(); }
/// Returns the number of voluntary waits of the thread with that name.
inline std::uint64_t waits_of_thread(const std::string& name) {
  std::ifstream status{folders_of_threads(name).at(0) / "status"};
  for (std::string key; status >> key;)
    if (key == "voluntary_ctxt_switches:") {
      std::uint64_t count = 0;
      status >> count;
      return count;
    }
  return 0;
}

}  // namespace dist_test
