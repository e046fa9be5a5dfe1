// A single worker in TF_CONFIG, without a launcher. With several workers the strategy would host an MPI world.
#include <dist/multi_worker.hpp>

#include <cstdlib>

int main() {
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:2222"]}, "task": {"type": "worker", "index": 0}})", 1);
  const dist::MultiWorker<dist::RingAllReduce> strategy{2};
  return strategy.num_replicas_in_sync() == 2 && strategy.task() == dist::Task{dist::TaskType::worker, 0} ? 0 : 1;
}
