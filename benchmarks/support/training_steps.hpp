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

/// What main returns where the contenders are training steps on two cores, which count images: the program's arguments are
/// [ROUNDS [JSON]], for all in turns, or --only NAME [SECONDS]. `title` stands above the table; see Arguments for `help`.
inline int compare_training_steps(int argc, char** argv, std::span<const NamedContender> contenders,
                                  std::span<const Quotient> quotients, const char* title, const char* help) {
  if (argc > 2 && std::string_view(argv[1]) == "--only")
    return run_alone(contenders, argv[2], argc > 3 ? std::atof(argv[3]) : 2, "images");
  const Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]] | --only NAME [SECONDS]", help};
  const JsonFile json{arguments.text(1)};
  const int rounds = arguments.number(0, 40);
  dist::Mirrored<dist::SharedMemoryAllReduce> both{2};  // for the gate
  Rounds measured{title, "images"};
  add(measured, contenders, quotients);
  measured.run(rounds, 0.1, quiet_cores(both));
  measured.print_table();
  if (json.get() != nullptr) measured.print_json(json.get());
  return 0;
}

}  // namespace bench
