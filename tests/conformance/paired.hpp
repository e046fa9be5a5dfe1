// A user-defined strategy: replicas are threads, and two neighbours share a copy of every variable.
#pragma once

#include <cstddef>
#include <string>

#include <conformance/paired_store.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/thread_replicas.hpp>

namespace conformance {

class Paired : public dist::BasicStrategy<Paired, dist::ThreadReplicas<dist::ThreadAllReduce, dist::Cpu>,
                                          dist::OneProcess, PairedStore> {
 public:
  explicit Paired(std::size_t replicas = 2) : BasicStrategy(Replicas::with_replicas(replicas)) {}

  [[nodiscard]] std::string describe() const { return "Paired: " + replicas_part().describe(); }
};

}  // namespace conformance
