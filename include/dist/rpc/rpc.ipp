#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

#include <dist/rpc/rpc.hpp>

namespace dist::rpc {

DIST_INLINE void copy(ChunkSpan pieces, std::span<std::byte> to) {
  if (size_of(pieces) != to.size())
    throw ShapeMismatch(concat("A message of ", size_of(pieces), " bytes does not fit"),
                        concat("the memory for it has ", to.size()), "Give memory of exactly the message's size");
  for (const Chunk piece : pieces) {
    if (!piece.empty()) std::memcpy(to.data(), piece.data(), piece.size());
    to = to.subspan(piece.size());
  }
}
DIST_INLINE std::vector<std::byte> joined(ChunkSpan pieces) {
  std::vector<std::byte> bytes(size_of(pieces));
  copy(pieces, bytes);
  return bytes;
}

/// The texts for a failure: its name, the problem of the call, and a suggestion.
struct FailureText {
  std::string_view name, problem, suggestion;
};
[[nodiscard]] DIST_INLINE const FailureText& text_of(Failure failure) {
  static constexpr FailureText texts[] = {
      {"deadline", " received no reply in time", "Give the call a longer timeout, or see what keeps the server busy"},
      {"cancelled", " was cancelled", "Call again if the result is wanted"},
      {"lost", " did not reach the server, or lost its connection",
       "Check whether the server still runs, listens at this address, and can be reached"},
      {"refused", " was refused",
       "Start all tasks of the job from one build, with the same DIST_JOB_SECRET, the same addresses, and "
       "certificates of the same authorities, or none"},
      {"unknown method", " names a method that the server does not have", "Start all tasks of the job from one build"},
      {"handler", " failed on the server with ", "Check the request that the server received"}};
  return texts[static_cast<std::size_t>(failure) - 1];
}
DIST_INLINE std::string_view to_string_view(Failure failure) { return text_of(failure).name; }

[[gnu::cold]] DIST_INLINE Outcome outcome_of_exception() {
  Outcome outcome{Failure::handler, "an exception that is not a std::exception", ""};
  if (const std::type_info* type = abi::__cxa_current_exception_type()) {
    int status = 0;
    char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
    outcome.thrown = name == nullptr ? type->name() : name;
    std::free(name);
  }
  try {
    throw;
  } catch (const std::exception& error) {
    outcome.why = error.what();
  } catch (...) {
  }
  return outcome;
}

[[gnu::cold]] DIST_INLINE std::string too_long(std::uint64_t size, std::uint64_t longest) {
  return concat("a message of ", size, " bytes, but only ", longest, " are allowed");
}

}  // namespace dist::rpc

namespace dist {

[[gnu::cold]] DIST_INLINE RpcError::RpcError(std::string_view method, std::string_view peer,
                                             const rpc::Outcome& outcome)
    : Error(concat("Call ", quoted(method), " to ", peer, rpc::text_of(outcome.failure).problem,
                   outcome.failure != rpc::Failure::handler ? std::string_view{}
                   : outcome.thrown.empty()                 ? std::string_view{"an error"}
                                                            : std::string_view{outcome.thrown}),
            outcome.why, rpc::text_of(outcome.failure).suggestion),
      outcome_(outcome),
      peer_(peer) {}

[[gnu::cold]] DIST_INLINE int RpcError::exit_code() const noexcept {
  return failure() <= rpc::Failure::lost ? ExitCode::try_again : Error::exit_code();
}

}  // namespace dist
