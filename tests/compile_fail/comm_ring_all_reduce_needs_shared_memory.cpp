// expect: RingAllReduce needs members that reach each other: use a communicator that models SharesMemory
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>

#ifdef CONTROL
using Ops = dist::RingAllReduce::On<dist::ThreadCommunicator>;
#else
using Ops = dist::RingAllReduce::On<dist::SelfCommunicator>;
#endif

int main() { return sizeof(Ops) > 0 ? 0 : 1; }
