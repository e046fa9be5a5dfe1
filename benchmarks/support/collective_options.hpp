#pragma once

#include <getopt.h>
#include <unistd.h>

#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// Policies for replicas on CPUs.
inline constexpr std::string_view policies_of_processors[] = {"ThreadAllReduce", "ReductionToOneDevice",
                                                              "RingAllReduce", "HierarchicalCopyAllReduce"};

/// Options for timing collectives, like nccl-tests.
struct CollectiveOptions {
  std::vector<std::size_t> sizes;  ///< in bytes
  std::size_t replicas = 2;        ///< dist only; peers get it from their launchers
  std::string policy;              ///< dist only
  std::string type = "float";
  std::string op = "sum";
  double duration = 0.2;  ///< seconds per size
  bool in_place = false;  ///< peers only; dist always works in place
  std::string json;       ///< path, or empty
};

namespace detail {

[[noreturn]] inline void collective_usage(const char* program, std::span<const std::string_view> policies,
                                          const std::string& problem) {
  std::string names;
  for (const std::string_view policy : policies) names.append(names.empty() ? "" : ", ").append(policy);
  if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", program, problem.c_str());
  std::fprintf(problem.empty() ? stdout : stderr,
               "usage: %s [options]\n"
               "  -b BYTES    smallest size, with K, M or G (4)\n"
               "  -e BYTES    largest size (64M)\n"
               "  -f FACTOR   between sizes; default: a list from 4 B to 64 MiB, with the CNN's 11083776\n"
               "  -r COUNT    replicas, 1 to 8 (2); not for peers\n"
               "  -p POLICY   not for peers; default: the first of\n"
               "              %s\n"
               "  -t TYPE     float, double, int32 (float)\n"
               "  -o OP       sum, max (sum)\n"
               "  -s SECONDS  per size (0.2)\n"
               "  -i          for peers: in place\n"
               "  --json FILE writes an object per row\n",
               program, names.c_str());
  std::exit(problem.empty() ? 0 : 2);
}

/// Parses "4", "16K" or "64M". Returns 0 for an invalid size.
inline std::size_t parse_bytes(const char* text) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (!std::isdigit(static_cast<unsigned char>(*text))) return 0;
  const std::string_view unit{end};
  if (unit == "") return number;
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  if (unit == "G") return number << 30;
  return 0;
}

}  // namespace detail

/// Exits the program with a message if an option is invalid. SIGALRM ends it after ten minutes, in case a peer has
/// died.
inline CollectiveOptions parse_collective_options(int argc, char** argv,
                                                  std::span<const std::string_view> policies = policies_of_processors) {
  alarm(600);
  CollectiveOptions options;
  options.policy = policies.front();
  std::size_t smallest = 4, largest = std::size_t{64} << 20;
  double factor = 0;
  const option longs[] = {{"json", required_argument, nullptr, 'j'}, {"help", no_argument, nullptr, 'h'}, {}};
  const auto fail = [&](const std::string& problem) { detail::collective_usage(argv[0], policies, problem); };
  for (int flag; (flag = getopt_long(argc, argv, "b:e:f:r:p:t:o:s:ih", longs, nullptr)) != -1;) {
    switch (flag) {
      case 'b':
        smallest = detail::parse_bytes(optarg);
        break;
      case 'e':
        largest = detail::parse_bytes(optarg);
        break;
      case 'f':
        factor = std::atof(optarg);
        break;
      case 'r':
        options.replicas = detail::parse_bytes(optarg);
        break;
      case 'p':
        options.policy = optarg;
        break;
      case 't':
        options.type = optarg;
        break;
      case 'o':
        options.op = optarg;
        break;
      case 's':
        options.duration = std::atof(optarg);
        break;
      case 'i':
        options.in_place = true;
        break;
      case 'j':
        options.json = optarg;
        break;
      case 'h':
        fail("");
        break;
      default:
        std::exit(2);
    }
  }
  if (optind < argc) fail(std::string{"superfluous argument '"} + argv[optind] + "'");
  if (smallest == 0 || largest < smallest) fail("-b and -e must be sizes in bytes, with -e at least -b");
  if (options.replicas < 1 || options.replicas > 8) fail("-r must be 1 to 8");
  if (options.duration <= 0) fail("-s must be a positive time in seconds");
  if (options.type != "float" && options.type != "double" && options.type != "int32")
    fail("-t must be float, double or int32, not '" + options.type + "'");
  if (options.op != "sum" && options.op != "max") fail("-o must be sum or max, not '" + options.op + "'");

  if (factor == 0) {
    constexpr std::size_t kib = 1 << 10, mib = 1 << 20;
    for (const std::size_t size :
         {std::size_t{4}, std::size_t{16}, std::size_t{64}, std::size_t{256}, kib, 4 * kib, 16 * kib, 64 * kib,
          256 * kib, mib, 4 * mib, std::size_t{11'083'776}, 16 * mib, 64 * mib})
      if (size >= smallest && size <= largest) options.sizes.push_back(size);
  } else {
    if (factor < 1.05) fail("-f must be at least 1.05");
    for (auto size = static_cast<double>(smallest); size <= static_cast<double>(largest); size *= factor)
      options.sizes.push_back(static_cast<std::size_t>(size));
  }
  if (options.sizes.empty()) fail("no default size is between -b and -e (use -f)");
  return options;
}

}  // namespace bench
