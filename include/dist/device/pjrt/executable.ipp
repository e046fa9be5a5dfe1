#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/device/pjrt/executable.hpp>

namespace dist::pjrt {

DIST_INLINE Executable Executable::deserialized(Client client, std::span<const std::byte> bytes, std::size_t replicas) {
  require_devices(client, replicas);
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_DeserializeAndLoad_Args);
  arguments.client = client.get();
  arguments.serialized_executable = reinterpret_cast<const char*>(bytes.data());
  arguments.serialized_executable_size = bytes.size();
  client.api().call(&PJRT_Api::PJRT_Executable_DeserializeAndLoad, arguments,
                    [] { return "to load a compiled program"; });
  Executable loaded{std::move(client), arguments.loaded_executable, replicas};
  loaded.count_results();
  return loaded;
}

DIST_INLINE std::vector<std::vector<Buffer>> Executable::execute(
    std::span<const std::vector<const Buffer*>> arguments) const {
  if (arguments.size() != replicas_)
    throw InvalidArgument("A program cannot be executed",
                          concat("it has ", replicas_, " replicas, but arguments are given for ", arguments.size()),
                          "Give the arguments of each replica");
  std::vector<std::vector<PJRT_Buffer*>> inputs(replicas_), outputs(replicas_, std::vector<PJRT_Buffer*>(results_));
  std::vector<PJRT_Buffer* const*> input_lists;
  std::vector<PJRT_Buffer**> output_lists;
  for (std::size_t replica = 0; replica < replicas_; ++replica) {
    if (arguments[replica].size() != arguments[0].size())
      throw InvalidArgument("A program cannot be executed",
                            concat("replica 0 has ", arguments[0].size(), " arguments, but replica ", replica, " has ",
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

DIST_INLINE std::vector<std::byte> Executable::serialized() const {
  const Description description = this->description();
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_Serialize_Args);
  arguments.executable = description.get();
  client_.api().call(&PJRT_Api::PJRT_Executable_Serialize, arguments, [] { return "to serialise a program"; });
  const auto* const first = reinterpret_cast<const std::byte*>(arguments.serialized_bytes);
  std::vector<std::byte> bytes(first, first + arguments.serialized_bytes_size);
  arguments.serialized_executable_deleter(arguments.serialized_executable);
  return bytes;
}

DIST_INLINE Executable::Description Executable::description() const {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_LoadedExecutable_GetExecutable_Args);
  arguments.loaded_executable = handle_.get();
  client_.api().call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, arguments, [] { return "to describe a program"; });
  return {arguments.executable, {&client_.api()}};
}

DIST_INLINE void Executable::count_results() {
  const Description description = this->description();
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Executable_NumOutputs_Args);
  arguments.executable = description.get();
  client_.api().call(&PJRT_Api::PJRT_Executable_NumOutputs, arguments, [] { return "to count results"; });
  results_ = arguments.num_outputs;
}

DIST_INLINE PJRT_LoadedExecutable* Executable::compile(const Client& client, std::string_view module,
                                                       std::size_t replicas) {
  require_devices(client, replicas);
  constexpr std::string_view format = "mlir";
  const std::string options = compile_options(client.platform(), replicas);
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
  client.api().call<ProgramRefused>(&PJRT_Api::PJRT_Client_Compile, arguments, [&] { return "to compile a program"; });
  return arguments.executable;
}

DIST_INLINE void Executable::require_devices(const Client& client, std::size_t replicas) {
  if (replicas == 0)
    throw InvalidArgument("A program cannot be compiled", "it has no replica", "Request one replica or more");
  static_cast<void>(client.device(replicas - 1));
}

DIST_INLINE std::string Executable::compile_options(std::string_view platform, std::size_t replicas) {
  std::string build{'\x20'};
  for (; replicas >= 0x80; replicas >>= 7) build.push_back(static_cast<char>(0x80U | (replicas & 0x7FU)));
  build.push_back(static_cast<char>(replicas));
  build.append("\x28\x01");
  std::string options{'\x1a', static_cast<char>(build.size())};
  options += build;
  if (platform != "cpu") return options;
  // A map entry: field 1 is the key, and field 2 the value, whose field 2 is a bool.
  constexpr std::string_view exact_maxima{"\x0a\x1bxla_cpu_enable_fast_min_max\x12\x02\x10\x00", 33};
  options.append({'\x3a', static_cast<char>(exact_maxima.size())}).append(exact_maxima);
  return options;
}

}  // namespace dist::pjrt
