#include <dist/cluster/tpu_resolver.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <support/what_throws.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::Task;
using dist::TaskType;
using dist::TpuResolver;

static_assert(dist::ClusterResolver<TpuResolver>);

namespace {

TpuResolver resolver(Environment::Variables variables, TpuResolver::Options options = {}) {
  return TpuResolver{std::move(options), Environment{std::move(variables)}};
}

}  // namespace

TEST_CASE("without the variables of a TPU, and for the local one, the cluster is empty (spec M22)") {
  for (const TpuResolver& alone : {resolver({}), resolver({{"TPU_NAME", "local"}}), resolver({}, {.tpu = "local"}),
                                   resolver({{"TPU_WORKER_HOSTNAMES", ""}, {"TPU_WORKER_ID", "3"}})}) {
    CHECK(alone.cluster_spec().empty());
    CHECK_FALSE(alone.task());
    CHECK_FALSE(alone.num_accelerators());
    CHECK_FALSE(alone.accelerator_type());
    CHECK_NOTHROW(validate_multi_worker(alone.cluster_spec(), alone.task(), alone.describe()));
  }
}

TEST_CASE("hosts are workers at the addresses in tf.distribute's variables or the option (spec M22)") {
  const std::string hosts = "grpc://10.0.0.1:8470,grpc://10.0.0.2:8471";
  const ClusterSpec expected{{TaskType::worker, {"10.0.0.1:8470", "10.0.0.2:8471"}}};
  const TpuResolver kubernetes =
      resolver({{"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", hosts}, {"TPU_NAME", "a:1"}, {"TPU_WORKER_ID", "1"}});
  CHECK(kubernetes.cluster_spec() == expected);
  CHECK(kubernetes.task() == Task{TaskType::worker, 1});
  CHECK(kubernetes.describe() == "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS");
  CHECK_NOTHROW(validate_multi_worker(kubernetes.cluster_spec(), kubernetes.task(), kubernetes.describe()));
  CHECK(resolver({{"TPU_NAME", hosts}}).cluster_spec() == expected);
  CHECK(resolver({{"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "b:1"}}, {.tpu = hosts}).cluster_spec() == expected);
  CHECK(resolver({}, {.tpu = "grpc://10.0.0.1"}).cluster_spec() == ClusterSpec{{TaskType::worker, {"10.0.0.1:8470"}}});
  CHECK(resolver({}, {.tpu = "10.0.0.1:8470"}).task() == Task{TaskType::worker, 0});
}

TEST_CASE("libtpu's variables list the hosts, and the library uses other ports than libtpu (spec M22)") {
  const TpuResolver slice = resolver({{"TPU_WORKER_HOSTNAMES", "tpu-0,tpu-1"}, {"TPU_WORKER_ID", "1"}});
  CHECK(slice.cluster_spec() == ClusterSpec{{TaskType::worker, {"tpu-0:8482", "tpu-1:8482"}}});
  CHECK(slice.task() == Task{TaskType::worker, 1});
  const TpuResolver shared = resolver({{"TPU_PROCESS_ADDRESSES", "tpu-0:8476,tpu-0:8477,tpu-1:8476,tpu-1:8477"},
                                       {"TPU_WORKER_HOSTNAMES", "tpu-0,tpu-1"},
                                       {"TPU_PROCESS_BOUNDS", "2,2,1"},
                                       {"TPU_WORKER_ID", "1"},
                                       {"CLOUD_TPU_TASK_ID", "3"}},
                                      {.port_base = 9000});
  CHECK(shared.cluster_spec() ==
        ClusterSpec{{TaskType::worker, {"tpu-0:9000", "tpu-0:9001", "tpu-1:9000", "tpu-1:9001"}}});
  CHECK(shared.task() == Task{TaskType::worker, 3});
  CHECK(shared.describe() == "TPU_PROCESS_ADDRESSES");
}

TEST_CASE("the default environment is the process's own (spec M22)") {
  setenv("TPU_WORKER_HOSTNAMES", "tpu-0,tpu-1", 1);
  setenv("TPU_WORKER_ID", "0", 1);
  CHECK(TpuResolver{}.cluster_spec().num_tasks(TaskType::worker) == 2);
  CHECK(TpuResolver{}.task() == Task{TaskType::worker, 0});
  unsetenv("TPU_WORKER_HOSTNAMES");
  unsetenv("TPU_WORKER_ID");
}

TEST_CASE("devices are derived from chips, with two devices each in the first generations (spec M22)") {
  const auto devices = [](const char* type, const char* name, const char* value) {
    return resolver({{"TPU_ACCELERATOR_TYPE", type}, {name, value}}).num_accelerators();
  };
  CHECK(devices("v4-16", "TPU_CHIPS_PER_PROCESS_BOUNDS", "2,2,1") == std::size_t{4});
  CHECK(devices("v4-16", "TPU_CHIPS_PER_HOST_BOUNDS", "2,4,1") == std::size_t{8});
  CHECK(devices("v3-32", "TPU_CHIPS_PER_PROCESS_BOUNDS", "2,2,1") == std::size_t{8});
  CHECK(devices("v2-8", "TPU_VISIBLE_DEVICES", "0,1") == std::size_t{4});
  CHECK(devices("v5litepod-8", "TPU_VISIBLE_CHIPS", "3") == std::size_t{1});
  CHECK_FALSE(devices("v4-8", "TPU_VISIBLE_CHIPS", ""));
  CHECK(resolver({{"TPU_VISIBLE_CHIPS", "3"}}).num_accelerators() == std::nullopt);
  CHECK(resolver({{"TPU_ACCELERATOR_TYPE", "v4-8"}, {"TPU_VISIBLE_CHIPS", "3"}}, {.num_accelerators = 2})
            .num_accelerators() == std::size_t{2});
  CHECK(resolver({{"TPU_ACCELERATOR_TYPE", "v4-16"}}).accelerator_type() == "v4-16");
}

TEST_CASE("a TPU name that needs Google's services, and a process without a number, are refused (spec M22)") {
  const auto refusal = [](const TpuResolver& tpu) {
    return support::what_throws<dist::InvalidArgument>([&] { static_cast<void>(tpu.task()); });
  };
  CHECK(refusal(resolver({{"TPU_NAME", "my-tpu"}})) ==
        "TPU_NAME names the TPU 'my-tpu', but not its hosts (only Google's services list them, and these are not "
        "queried). Set TPU_NAME to local for the TPU of this machine, or TPU_WORKER_HOSTNAMES and TPU_WORKER_ID on all "
        "hosts of the TPU.");
  CHECK(refusal(resolver({{"TPU_CONFIG", "{}"}})).find("TPU_CONFIG names a TPU, but not its hosts") == 0);
  CHECK(resolver({{"TPU_NAME", "my-tpu"}, {"TPU_WORKER_HOSTNAMES", "a"}}).task() == Task{TaskType::worker, 0});
  CHECK(refusal(resolver({{"TPU_WORKER_HOSTNAMES", "a,b"}})) ==
        "The environment does not specify which of the 2 processes of TPU_WORKER_HOSTNAMES this one is (neither "
        "CLOUD_TPU_TASK_ID nor TPU_WORKER_ID is set). Run the program on the hosts of the TPU, and give each its "
        "number in TPU_WORKER_ID.");
  CHECK(refusal(resolver({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_WORKER_ID", "one"}})).find("TPU_WORKER_ID") !=
        std::string::npos);
}

TEST_CASE("inconsistent or malformed variables are refused (spec M22)") {
  const auto refusal = [](Environment::Variables variables, TpuResolver::Options options = {}) {
    return support::what_throws<dist::InvalidArgument>(
        [&] { static_cast<void>(resolver(std::move(variables), std::move(options)).cluster_spec()); });
  };
  CHECK(refusal({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_PROCESS_BOUNDS", "1,2,2"}}) ==
        "The TPU's variables contradict each other (TPU_PROCESS_BOUNDS has 4 processes, but TPU_WORKER_HOSTNAMES has "
        "2). List all processes in TPU_WORKER_HOSTNAMES or TPU_PROCESS_ADDRESSES.");
  CHECK(refusal({{"TPU_HOST_BOUNDS", "1,2"}}).find("has 2 processes, but the TPU's environment has 1") !=
        std::string::npos);
  for (const char* bounds : {"2,,1", "2,0", "2x2", "-1", " 2", "1000,1001", "99999999999999999999"}) {
    CAPTURE(bounds);
    CHECK(refusal({{"TPU_PROCESS_BOUNDS", bounds}}).find("TPU_PROCESS_BOUNDS is not a list of extents") == 0);
  }
  CHECK(refusal({{"MEGASCALE_NUM_SLICES", "2"}}).find("The TPU has several slices") == 0);
  CHECK(resolver({{"MEGASCALE_NUM_SLICES", "1"}}).cluster_spec().empty());
  CHECK(refusal({{"TPU_WORKER_HOSTNAMES", "a,"}}).find("worker 1 of TPU_WORKER_HOSTNAMES") != std::string::npos);
  CHECK(refusal({{"TPU_NAME", "grpc://a:port"}}).find("worker 0 of TPU_NAME") != std::string::npos);
  CHECK(refusal({{"TPU_PROCESS_ADDRESSES", "a:1,a:2"}}, {.port_base = 65535}).find("its port would be 65536") !=
        std::string::npos);
}
