/// A file of what all strategies of a job do, for chrome://tracing and ui.perfetto.dev: by one line in the program, or
/// without one by DIST_TRACE=path in the environment.
#pragma once

#include <cstddef>
#include <string>

#include <dist/core/config.hpp>
#include <dist/core/trace.hpp>

namespace dist {

/// Records what strategies do from here to the end of this object's life, and then writes it to a file:
///
///     dist::TraceFile trace{"trace.json"};
///
/// There are events for each replica's part of a run, for each collective of a replica, and for the input; threads and
/// processes have names. A replica's queue on a GPU has a row of its own, which shows when the GPU did the work of these
/// runs and collectives; what a StepGraph captures is one event there. `Default` and `OneDevice` record nothing, as they
/// are the plain loop: use a TraceSpan there. The processes of a job that name the same file write one file together.
/// Strategies that it is to see are made after it and end before it.
class TraceFile {
 public:
  /// Empties the file, if there is one. Events beyond `capacity` are dropped, and a warning counts them. Throws
  /// FileError for a path that cannot be written, WrongStrategy while another TraceFile lives.
  explicit TraceFile(std::string path, std::size_t capacity = std::size_t{1} << 18);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

 private:
  std::string path_;
  Trace trace_;
};

namespace detail {

/// Starts the trace that DIST_TRACE asks for, once in a process; it is written when the process ends in order.
void trace_as_the_environment_asks();

/// Names this process in the active trace.
void name_traced_process(std::size_t number, std::string name);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/trace_file.ipp>
#endif
