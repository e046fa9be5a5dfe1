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

DIST_INLINE std::string_view to_string_view(Failure failure) {
  constexpr std::string_view names[] = {"deadline", "cancelled", "lost", "refused", "unknown method", "handler"};
  return names[static_cast<std::size_t>(failure) - 1];
}

DIST_INLINE Outcome outcome_of_exception() {
  Outcome outcome{Failure::handler, "an exception that is no std::exception", ""};
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

DIST_INLINE std::string too_long(std::uint64_t size, std::uint64_t longest) {
  return concat("a message of ", size, " bytes, where ", longest, " are allowed");
}

}  // namespace dist::rpc

namespace dist {

DIST_INLINE RpcError::RpcError(std::string_view method, std::string_view peer, const rpc::Outcome& outcome)
    : Error(problem_of(method, peer, outcome), outcome.why, suggestion_for(outcome.failure)),
      outcome_(outcome),
      peer_(peer) {}

DIST_INLINE int RpcError::exit_code() const noexcept {
  switch (failure()) {
    case rpc::Failure::deadline:
    case rpc::Failure::cancelled:
    case rpc::Failure::lost:
      return ExitCode::try_again;
    default:
      return Error::exit_code();
  }
}
DIST_INLINE std::string RpcError::problem_of(std::string_view method, std::string_view peer,
                                             const rpc::Outcome& outcome) {
  const std::string call = concat("Call ", quoted(method), " to ", peer);
  switch (outcome.failure) {
    case rpc::Failure::deadline:
      return concat(call, " has no reply in time");
    case rpc::Failure::cancelled:
      return concat(call, " was cancelled");
    case rpc::Failure::lost:
      return concat(call, " did not reach the server, or lost it");
    case rpc::Failure::refused:
      return concat(call, " was refused");
    case rpc::Failure::unknown_method:
      return concat(call, " asks for what the server does not do");
    default:
      return concat(call, " failed there with ", outcome.thrown.empty() ? "an error" : outcome.thrown);
  }
}

DIST_INLINE std::string_view RpcError::suggestion_for(rpc::Failure failure) {
  switch (failure) {
    case rpc::Failure::deadline:
      return "Give the call a longer timeout, or see what keeps the server busy";
    case rpc::Failure::cancelled:
      return "Call again if the result is wanted";
    case rpc::Failure::lost:
      return "See whether the server still runs, listens at this address, and can be reached";
    case rpc::Failure::refused:
      return "Start all tasks of the job from one build, with the same DIST_JOB_SECRET, the same addresses, and "
             "certificates of the same authorities, or none";
    case rpc::Failure::unknown_method:
      return "Start all tasks of the job from one build";
    default:
      return "See what the server was asked to do";
  }
}

}  // namespace dist
