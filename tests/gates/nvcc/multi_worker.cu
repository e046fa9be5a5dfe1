// nvcc compiles strategies of several processes.
#include <dist/multi_worker.hpp>

int main() {
  dist::MultiWorker<dist::AutoAllReduce> strategy;
  strategy.run([](auto& replica) { replica.barrier(); });
}
