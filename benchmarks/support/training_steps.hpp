#pragma once

#include <cstdlib>
#include <span>
#include <string_view>

#include <dist/dist.hpp>

#include "arguments.hpp"
#include "machine.hpp"
#include "named_contenders.hpp"
#include "rounds.hpp"

namespace bench {

struct Comparison {
  const char* title;  ///< title of the table
  const char* help;   ///< see Arguments
  const char* unit = "images";
  double seconds = 0.1;  ///< per contender and round
  std::span<const Difference> differences = {};
};

/// Main program of comparisons on two cores: [ROUNDS [JSON]] for all contenders in turns, or --only NAME [SECONDS].
/// Returns the exit status.
inline int compare_training_steps(int argc, char** argv, std::span<const NamedContender> contenders,
                                  std::span<const Quotient> quotients, const Comparison& comparison) {
  if (argc > 2 && std::string_view(argv[1]) == "--only")
    return run_alone(contenders, argv[2], argc > 3 ? std::atof(argv[3]) : 2, comparison.unit);
  const Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]] | --only NAME [SECONDS]", comparison.help};
  const JsonFile json{arguments.text(1)};
  const int rounds = arguments.number(0, 40);
  dist::Mirrored<dist::ThreadAllReduce> both{2};  // for the gate
  Rounds measured{comparison.title, comparison.unit};
  add(measured, contenders, quotients, comparison.differences);
  measured.run(rounds, comparison.seconds, quiet_cores(both));
  measured.print_table();
  if (json.get() != nullptr) measured.print_json(json.get());
  return measured.limits_hold() ? 0 : 1;
}

}  // namespace bench
