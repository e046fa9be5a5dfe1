#pragma once

#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace_file.hpp>
#include <dist/core/warning.hpp>

namespace dist {

DIST_INLINE TraceFile::TraceFile(std::string path, std::size_t capacity) : path_(std::move(path)), trace_(capacity) {
  Trace* none = nullptr;
  if (!detail::active_trace.compare_exchange_strong(none, &trace_))
    throw WrongStrategy("A second trace was asked for",
                        "one TraceFile lives already, DIST_TRACE is set, or NvtxRanges live without a trace",
                        "End the first one before, and make NvtxRanges after the TraceFile");
  try {
    Trace::clear_file(path_);
  } catch (...) {
    detail::active_trace.store(nullptr);
    throw;
  }
}

DIST_INLINE TraceFile::~TraceFile() {
  detail::active_trace.store(nullptr);
  try {
    trace_.append_to_file(path_);
    if (trace_.dropped() != 0)
      detail::Warning{}.give(
          text(path_, " lacks ", trace_.dropped(), " events that found no room: give TraceFile a greater capacity."));
  } catch (const std::exception& error) {
    detail::Warning{}.give(error.what());
  }
}

namespace detail {

DIST_INLINE void trace_as_the_environment_asks() {
  static const std::optional<TraceFile> asked = []() -> std::optional<TraceFile> {
    const char* const path = std::getenv("DIST_TRACE");
    if (path == nullptr || *path == '\0' || active_trace.load() != nullptr) return std::nullopt;
    return std::optional<TraceFile>{std::in_place, path};
  }();
}

DIST_INLINE void name_traced_process(std::size_t number, std::string name) {
  if (Trace* const trace = active_trace.load(std::memory_order_relaxed)) trace->name_process(number, std::move(name));
}

}  // namespace detail

}  // namespace dist
