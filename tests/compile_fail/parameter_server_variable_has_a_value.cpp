// expect: an OnRead variable of a ParameterServer needs the aggregation Sum or Mean
#include <dist/parameter_server.hpp>

#ifndef CONTROL
using Aggregation = dist::None;
#else
using Aggregation = dist::Sum;
#endif

void make(dist::ParameterServer<dist::Local>& strategy) {
  const auto variable = strategy.variable<float, dist::OnRead, Aggregation>({2});
}

int main() {}
