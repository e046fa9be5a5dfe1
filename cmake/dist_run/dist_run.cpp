#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "launcher.hpp"

namespace {

constexpr const char* usage = R"(usage: dist-run -n N [options] [--] program arguments...
       dist-run --ps P --workers N [options] [--] program arguments...

Starts the tasks of a job on this machine, and sets TF_CONFIG for each. Prefixes each output line with its task, for
example "[worker 1] ". Forwards SIGINT, SIGTERM and SIGUSR1 to all tasks.

  -n N, --workers N  number of workers
  --ps P             starts P parameter servers, and a chief that coordinates the job. The job ends with the chief, and
                     has its exit status. If a worker fails, only this worker is restarted (see --restarts). If a
                     server fails, its variables are lost, so all tasks are restarted
  --evaluator        starts an evaluator, which ends by itself, and is restarted if it fails
  --restarts R       restarts tasks after failures, at most R times (default 0); tasks read the number of restarts so
                     far from DIST_RESTARTS
  --secret           creates a secret for the job, so that other processes cannot join it
  --help             prints this text
  --                 ends the options

Exits with the status of the chief, or of the first worker or server that failed. The remaining tasks then have ten
seconds to exit before they are killed.
)";

int refuse(std::string_view what) {
  std::fprintf(stderr, "dist-run: %.*s; see dist-run --help\n", static_cast<int>(what.size()), what.data());
  return 2;
}

}  // namespace

int main(int count, char** arguments) try {
  dist_run::Options options;
  int next = 1;
  for (; next < count && arguments[next][0] == '-'; ++next) {
    const std::string_view option = arguments[next];
    if (option == "--help" || option == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (option == "--") {
      ++next;
      break;
    }
    if (option == "--secret" || option == "--evaluator") {
      (option == "--secret" ? options.secret : options.evaluator) = true;
      continue;
    }
    std::size_t* const value = option == "-n" || option == "--workers" ? &options.workers
                               : option == "--ps"                      ? &options.servers
                               : option == "--restarts"                ? &options.restarts
                                                                       : nullptr;
    if (value == nullptr) return refuse(dist::concat("unknown option ", option));
    if (++next == count) return refuse(dist::concat(option, " needs a number"));
    char* end = nullptr;
    const long number = std::strtol(arguments[next], &end, 10);
    if (end == arguments[next] || *end != '\0' || number < (option == "--restarts" ? 0 : 1) || number > 1024)
      return refuse(dist::concat(option, " needs an integer up to 1024, not '", arguments[next], "'"));
    *value = static_cast<std::size_t>(number);
  }
  options.command.assign(arguments + next, arguments + count);
  if (options.workers == 0) return refuse("the number of workers is missing (-n N)");
  if (options.command.empty()) return refuse("the program to start is missing");
  return dist_run::run(options, stdout, stderr);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "dist-run: %s\n", error.what());
  return 2;
}
