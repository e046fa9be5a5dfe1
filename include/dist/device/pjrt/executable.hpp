#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/device/pjrt/buffer.hpp>

namespace dist::pjrt {

/// A program that XLA has compiled for the first devices of a client, one for each replica. All replicas run the same
/// code on buffers of their own, and meet in its collectives.
class Executable {
 public:
  /// Compiles a module of StableHLO, as text, whose function `main` is the program. Throws ProgramRefused with XLA's words,
  /// and InvalidArgument where there are fewer devices than replicas.
  Executable(Client client, std::string_view module, std::size_t replicas = 1)
      : Executable(client, compile(client, module, replicas), replicas) {
    count_results();
  }

  /// What `serialized` gave another process with a client of the same plugin. Throws PjrtError, and InvalidArgument where
  /// there are fewer devices than replicas.
  [[nodiscard]] static Executable deserialized(Client client, std::span<const std::byte> bytes, std::size_t replicas) {
    require_devices(client, replicas);
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_DeserializeAndLoad_Args);
    arguments.client = client.get();
    arguments.serialized_executable = reinterpret_cast<const char*>(bytes.data());
    arguments.serialized_executable_size = bytes.size();
    client.api().call(&PJRT_Api::PJRT_Executable_DeserializeAndLoad, arguments,
                      [] { return "to load what was compiled before"; });
    Executable loaded{std::move(client), arguments.loaded_executable, replicas};
    loaded.count_results();
    return loaded;
  }

  [[nodiscard]] PJRT_LoadedExecutable* get() const noexcept { return handle_.get(); }
  [[nodiscard]] const Client& client() const noexcept { return client_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// How many buffers each replica returns.
  [[nodiscard]] std::size_t results() const noexcept { return results_; }

  /// Starts the program with the arguments of each replica, which lie on its device: `arguments[replica][i]`. The results
  /// are buffers that devices may still compute: whoever reads them waits, and learns what went wrong. Arguments that the
  /// program declares as donated are gone afterwards. Throws InvalidArgument and PjrtError.
  [[nodiscard]] std::vector<std::vector<Buffer>> execute(std::span<const std::vector<const Buffer*>> arguments) const {
    if (arguments.size() != replicas_)
      throw InvalidArgument("A program cannot be executed",
                            text("it has ", replicas_, " replicas, and arguments are given for ", arguments.size()),
                            "Give the arguments of each replica");
    std::vector<std::vector<PJRT_Buffer*>> inputs(replicas_), outputs(replicas_, std::vector<PJRT_Buffer*>(results_));
    std::vector<PJRT_Buffer* const*> input_lists;
    std::vector<PJRT_Buffer**> output_lists;
    for (std::size_t replica = 0; replica < replicas_; ++replica) {
      if (arguments[replica].size() != arguments[0].size())
        throw InvalidArgument("A program cannot be executed",
                              text("replica 0 has ", arguments[0].size(), " arguments, and replica ", replica, " has ",
                                   arguments[replica].size()),
                              "Give each replica the same arguments");
      for (const Buffer* argument : arguments[replica]) inputs[replica].push_back(argument->get());
      input_lists.push_back(inputs[replica].data());
      output_lists.push_back(outputs[replica].data());
    }
    auto options = DIST_PJRT_ARGUMENTS(PJRT_ExecuteOptions);
    auto call = DIST_PJRT_ARGUMENTS(PJRT_LoadedExecutable_Execute_Args);
    call.executable = handle_.get();
    call.options = &options;
    call.argument_lists = input_lists.data();
    call.num_devices = replicas_;
    call.num_args = arguments[0].size();
    call.output_lists = output_lists.data();
    client_.api().call(&PJRT_Api::PJRT_LoadedExecutable_Execute, call, [] { return "to execute a program"; });
    std::vector<std::vector<Buffer>> results(replicas_);
    for (std::size_t replica = 0; replica < replicas_; ++replica)
      for (PJRT_Buffer* const output : outputs[replica]) results[replica].emplace_back(client_, output);
    return results;
  }

  /// The compiled program, for processes with a client of the same plugin on the same kind of machine. Throws PjrtError
  /// where the plugin cannot.
  [[nodiscard]] std::vector<std::byte> serialized() const {
    const Description description = this->description();
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_Serialize_Args);
    arguments.executable = description.get();
    client_.api().call(&PJRT_Api::PJRT_Executable_Serialize, arguments, [] { return "to serialise a program"; });
    const auto* const first = reinterpret_cast<const std::byte*>(arguments.serialized_bytes);
    std::vector<std::byte> bytes(first, first + arguments.serialized_bytes_size);
    arguments.serialized_executable_deleter(arguments.serialized_executable);
    return bytes;
  }

 private:
  /// What the plugin says of a program, apart from the devices on which it is loaded.
  using Description = Owned<&PJRT_Executable_Destroy_Args::executable, &PJRT_Api::PJRT_Executable_Destroy>;
  [[nodiscard]] Description description() const {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_LoadedExecutable_GetExecutable_Args);
    arguments.loaded_executable = handle_.get();
    client_.api().call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, arguments,
                       [] { return "to look at a program"; });
    return {arguments.executable, {&client_.api()}};
  }

  Executable(Client client, PJRT_LoadedExecutable* handle, std::size_t replicas)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), replicas_(replicas) {}

  void count_results() {
    const Description description = this->description();
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_NumOutputs_Args);
    arguments.executable = description.get();
    client_.api().call(&PJRT_Api::PJRT_Executable_NumOutputs, arguments, [] { return "to count results"; });
    results_ = arguments.num_outputs;
  }

  [[nodiscard]] static PJRT_LoadedExecutable* compile(const Client& client, std::string_view module,
                                                      std::size_t replicas) {
    require_devices(client, replicas);
    constexpr std::string_view format = "mlir";
    const std::string options = compile_options(replicas);
    auto program = DIST_PJRT_ARGUMENTS(PJRT_Program);
    program.code = const_cast<char*>(module.data());
    program.code_size = module.size();
    program.format = format.data();
    program.format_size = format.size();
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_Compile_Args);
    arguments.client = client.get();
    arguments.program = &program;
    arguments.compile_options = options.data();
    arguments.compile_options_size = options.size();
    client.api().call<ProgramRefused>(&PJRT_Api::PJRT_Client_Compile, arguments,
                                      [&] { return "to compile a program"; });
    return arguments.executable;
  }

  static void require_devices(const Client& client, std::size_t replicas) {
    if (replicas == 0)
      throw InvalidArgument("A program cannot be compiled", "it has no replica", "Ask for one replica or more");
    static_cast<void>(client.device(replicas - 1));
  }

  /// XLA's CompileOptionsProto with the number of replicas, and one partition: field 3, executable_build_options, has them
  /// as its fields 4 and 5 (xla/pjrt/proto/compile_options.proto).
  [[nodiscard]] static std::string compile_options(std::size_t replicas) {
    std::string build{'\x20'};
    for (; replicas >= 0x80; replicas >>= 7) build.push_back(static_cast<char>(0x80U | (replicas & 0x7FU)));
    build.push_back(static_cast<char>(replicas));
    build.append("\x28\x01");
    return std::string{'\x1a', static_cast<char>(build.size())} + build;
  }

  Client client_;
  Owned<&PJRT_LoadedExecutable_Destroy_Args::executable, &PJRT_Api::PJRT_LoadedExecutable_Destroy> handle_;
  std::size_t replicas_;
  std::size_t results_ = 0;
};

}  // namespace dist::pjrt
