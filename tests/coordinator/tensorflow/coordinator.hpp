// Made by make_fixtures.py with TensorFlow 2.21.0.
#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/shape.hpp>

namespace tensorflow_coordinator {

/// The shards of variables created one after another, with at most two shards each, on two parameter servers.
struct Shard {
  std::size_t rows, server;
};
inline const dist::Shape shapes[] = {{5, 3}, {}, {4}, {1, 7}, {3}, {2, 2}};
inline const std::vector<Shard> shards[] = {{{3, 0}, {2, 1}}, {{1, 0}},         {{2, 1}, {2, 0}},
                                            {{1, 1}},         {{2, 0}, {1, 1}}, {{1, 0}, {1, 1}}};

/// The exception of a call, or another result.
struct Outcome {
  const char *what, *result;
};
inline constexpr Outcome errors[] = {
    {"fetch of what failed", "the function's error"},
    {"join after an error", "the function's error"},
    {"join again", "nothing"},
    {"schedule after an error", "the function's error"},
    {"join after schedule has thrown", "nothing"},
    {"fetch of what was scheduled then", "nothing"},
    {"done after an error", "the function's error"},
    {"done again", "nothing"},
    {"join with functions that wait behind one that fails", "the function's error"},
    {"fetch of one that ran before", "nothing"},
    {"fetch of the last that waited", "cancelled"},
};
inline constexpr Outcome losses[] = {
    {"join where a worker was killed", "nothing"},
    {"how often two functions began", "3"},
    {"their numbers, in order", "0 1"},
    {"the first number of a dataset comes again where its worker was killed", "yes"},
    {"join where a parameter server was killed", "unavailable"},
};

}  // namespace tensorflow_coordinator
