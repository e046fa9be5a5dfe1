// Strategies of several processes are for programs that nvcc compiles, too.
#include <dist/multi_worker.hpp>

int main() {
  dist::MultiWorker<dist::AutoAllReduce> strategy;
  strategy.run([](auto& replica) { replica.barrier(); });
}
