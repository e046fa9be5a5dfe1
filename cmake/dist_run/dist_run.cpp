#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "launcher.hpp"

namespace {

constexpr const char* usage = R"(usage: dist-run -n N [options] [--] program arguments...
       dist-run --ps P --workers N [options] [--] program arguments...

Starts the tasks of a job on this machine, each with its TF_CONFIG. Each line that worker 1 prints appears behind
"[worker 1] ". SIGINT, SIGTERM and SIGUSR1 go to all tasks.

  -n N, --workers N  the number of workers
  --ps P             P parameter servers, and a chief that coordinates the job: the job lasts as long as the chief, and
                     has its status. A worker that fails does not end it, and is started again by itself. A server that
                     fails ends the job, because its variables are lost: all tasks are started again
  --evaluator        an evaluator beside them, which ends by itself; if it fails, it is started again
  --restarts R       starts tasks again after a failure, at most R times; DIST_RESTARTS tells them how often that was done
  --secret           makes a secret of the job, so that no other process can join it
  --help             prints this text
  --                 ends the options

The status is that of the chief, or of the worker or server that failed first; the others then have ten seconds to end,
and are killed.
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
    if (value == nullptr) return refuse(dist::concat("there is no option ", option));
    if (++next == count) return refuse(dist::concat(option, " lacks its number"));
    char* end = nullptr;
    const long number = std::strtol(arguments[next], &end, 10);
    if (end == arguments[next] || *end != '\0' || number < (option == "--restarts" ? 0 : 1) || number > 1024)
      return refuse(dist::concat(option, " takes a whole number up to 1024, not '", arguments[next], "'"));
    *value = static_cast<std::size_t>(number);
  }
  options.command.assign(arguments + next, arguments + count);
  if (options.workers == 0) return refuse("the number of workers is missing");
  if (options.command.empty()) return refuse("the program is missing");
  return dist_run::run(options, stdout, stderr);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "dist-run: %s\n", error.what());
  return 2;
}
