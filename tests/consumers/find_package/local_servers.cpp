// A user's program with parameter servers as threads, which needs no optional package.
#include <dist/coordinator/local_job.hpp>
#include <dist/parameter_server.hpp>

int main() {
  const dist::LocalJob job{1, 1};
  dist::ParameterServer<dist::Local> strategy{job.resolver()};
  const auto answer = strategy.variable<float>({}, 42.0F);
  return answer.read(strategy.scope())[0] == 42.0F ? 0 : 1;
}
