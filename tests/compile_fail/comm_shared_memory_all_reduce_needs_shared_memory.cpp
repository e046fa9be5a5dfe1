// expect: SharedMemoryAllReduce needs replicas in one address space: use a communicator that models SharesMemory
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>

#ifdef CONTROL
using Ops = dist::SharedMemoryAllReduce::On<dist::ThreadCommunicator>;
#else
using Ops = dist::SharedMemoryAllReduce::On<dist::SelfCommunicator>;
#endif

int main() { return sizeof(Ops) > 0 ? 0 : 1; }
