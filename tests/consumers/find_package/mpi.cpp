// The component brings what its headers reach: JSON for TF_CONFIG, OpenSSL for jobs with a secret.
#include <dist/multi_worker.hpp>

using Strategy = dist::MultiWorker<dist::RingAllReduce>;

int main(int argc, char**) {
  if (argc > 1) static_cast<void>(Strategy{}.num_workers());  // compiled and linked; the test starts no workers
  return dist::mpi::is_running() ? 1 : 0;
}
