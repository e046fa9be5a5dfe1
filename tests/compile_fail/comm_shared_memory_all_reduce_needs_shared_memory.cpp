// expect: ThreadAllReduce needs replicas in one address space: use a communicator that models SharesMemory
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>

#ifdef CONTROL
using Ops = dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
#else
using Ops = dist::ThreadAllReduce::On<dist::SelfCommunicator>;
#endif

int main() { return sizeof(Ops) > 0 ? 0 : 1; }
