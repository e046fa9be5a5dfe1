// expect: ReductionToOneDevice needs replicas in one address space: use a communicator that models SharesMemory
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>

#ifdef CONTROL
using Ops = dist::ReductionToOneDevice::On<dist::ThreadCommunicator>;
#else
using Ops = dist::ReductionToOneDevice::On<dist::SelfCommunicator>;
#endif

int main() { return sizeof(Ops) > 0 ? 0 : 1; }
