// Cost of including a header: the front end's median time for a file with only this header, compared with an empty
// file, for header-only programs and for programs that link dist::dist.
//
//   bench_include_cost COMPILER INCLUDE_FOLDER [RUNS]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/arguments.hpp"
#include "support/rounds.hpp"

namespace {

double parse_seconds(const std::string& compiler, const std::string& options, const std::string& lines, int runs) {
  const std::string command =
      "printf '" + lines + "' | " + compiler + " -std=c++20 -fsyntax-only " + options + " -x c++ -";
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const double start = bench::seconds();
    if (std::system(command.c_str()) != 0) std::exit(1);
    times.push_back(bench::seconds() - start);
  }
  return bench::distribution(times).median;
}

std::string include(const std::string& header) { return "#include <" + header + ">\\n"; }

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 3, "COMPILER INCLUDE_FOLDER [RUNS]",
                                   "Times the compiler's front end for each header."};
  if (argc < 3) arguments.refuse("the compiler and the include folder are missing");
  const std::string compiler = argv[1], includes = argv[2];
  const int runs = arguments.number(2, 9);
  std::string core;
  for (const char* name : {"aligned_buffer", "config", "contract", "dtype", "error", "ids", "index_range", "random",
                           "reduce_op", "shape", "static_shape", "tensor", "text"})
    core += include(std::string("dist/core/") + name + ".hpp");
  const std::pair<const char*, std::string> subjects[] = {
      {"nothing", ""},
      {"all of dist/core/", core},
      {"dist/dist.hpp", include("dist/dist.hpp")},
      {"dist/data.hpp", include("dist/data.hpp")},
      {"dist/nn.hpp", include("dist/nn.hpp")},
      {"dist/train.hpp", include("dist/train.hpp")},
      {"dist/strategy/parameter_server.hpp", include("dist/strategy/parameter_server.hpp")},
      {"dist/parameter_server.hpp", include("dist/parameter_server.hpp")},
  };
  std::printf("include cost, %s, median of %d     header-only   compiled parts\n", compiler.c_str(), runs);
  for (const auto& [name, lines] : subjects)
    std::printf("  %-40s %10.3f s %14.3f s\n", name, parse_seconds(compiler, "-I" + includes, lines, runs),
                parse_seconds(compiler, "-DDIST_COMPILED -I" + includes, lines, runs));
}
