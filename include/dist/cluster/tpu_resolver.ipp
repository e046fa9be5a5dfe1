#pragma once

#include <map>

#include <dist/cluster/address.hpp>
#include <dist/cluster/tpu_resolver.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

/// Splits "a,b,c".
[[nodiscard]] inline std::vector<std::string> comma_separated(std::string_view list) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace detail

DIST_INLINE ClusterSpec TpuResolver::cluster_spec() const {
  constexpr std::uint16_t port_of_tf = 8470;
  const Origin origin = this->origin();
  std::map<std::string, std::size_t> processes_of_hosts;
  ClusterSpec cluster;
  for (std::size_t index = 0; index < origin.hosts.size(); ++index) {
    const std::string owner = concat(to_string(Task{TaskType::worker, index}), " of ", origin.name);
    const std::string& written = origin.hosts[index];
    const bool has_port = written.find(':') != std::string::npos;
    Address address = parse_address(has_port ? written : concat(written, ":", port_of_tf), owner);
    if (origin.is_of_libtpu) {
      const std::size_t port = options_.port_base + processes_of_hosts[address.host]++;
      if (port == 0 || port > 65535)
        throw InvalidArgument(concat(owner, " has no valid port"), concat("its port would be ", port),
                              "Choose another port_base");
      address.port = static_cast<std::uint16_t>(port);
    }
    cluster.add(Task{TaskType::worker, index}, to_string(address));
  }
  return cluster;
}

DIST_INLINE std::optional<Task> TpuResolver::task() const {
  const Origin origin = this->origin();
  if (origin.hosts.empty()) return std::nullopt;
  for (const char* name : {"CLOUD_TPU_TASK_ID", "TPU_WORKER_ID"})
    if (value(name)) return Task{TaskType::worker, *environment_.number(name)};
  if (origin.hosts.size() == 1) return Task{TaskType::worker, 0};
  throw InvalidArgument(concat("The environment does not specify which of the ", origin.hosts.size(), " processes of ",
                               origin.name, " this one is"),
                        "neither CLOUD_TPU_TASK_ID nor TPU_WORKER_ID is set",
                        "Run the program on the hosts of the TPU, and give each its number in TPU_WORKER_ID");
}

DIST_INLINE std::optional<std::size_t> TpuResolver::num_accelerators() const {
  if (options_.num_accelerators) return options_.num_accelerators;
  const std::optional<std::string> type = accelerator_type();
  if (!type) return std::nullopt;
  // In the first generations, each of a chip's two cores is a device; later, the chip is.
  const std::size_t devices_of_chip = type->starts_with("v2-") || type->starts_with("v3-") ? 2 : 1;
  for (const char* name : {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"})
    if (const auto chips = value(name)) return devices_of_chip * detail::comma_separated(*chips).size();
  const std::optional<std::size_t> chips = product("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS");
  return chips ? std::optional{devices_of_chip * *chips} : std::nullopt;
}

DIST_INLINE TpuResolver::Origin TpuResolver::origin() const {
  const auto named = [](const char* name, std::string_view list) {
    Origin origin{name};
    if (list == "local") return origin;
    origin.hosts = detail::comma_separated(list);
    for (std::string& host : origin.hosts)
      if (constexpr std::string_view protocol = "grpc://"; host.starts_with(protocol)) host.erase(0, protocol.size());
    return origin;
  };
  if (!options_.tpu.empty()) return named("TpuResolver's option tpu", options_.tpu);
  if (const auto list = value("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS"))
    return named("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", *list);
  const std::optional<std::string> name = value("TPU_NAME");
  if (name && (*name == "local" || name->find(':') != std::string::npos)) return named("TPU_NAME", *name);
  Origin origin{"the TPU's environment", {}, true};
  for (const char* variable : {"TPU_PROCESS_ADDRESSES", "TPU_WORKER_HOSTNAMES"})
    if (const auto list = value(variable); list && origin.hosts.empty())
      origin = {variable, detail::comma_separated(*list), true};
  if (origin.hosts.empty() && (name || value("TPU_CONFIG")))
    throw InvalidArgument(
        name ? concat("TPU_NAME names the TPU ", quoted(*name), ", but not its hosts")
             : "TPU_CONFIG names a TPU, but not its hosts",
        "only Google's services list them, and these are not queried",
        "Set TPU_NAME to local for the TPU of this machine, or TPU_WORKER_HOSTNAMES and TPU_WORKER_ID on all hosts of "
        "the TPU");
  require_agreement(origin);
  return origin;
}

DIST_INLINE void TpuResolver::require_agreement(const Origin& origin) const {
  if (const auto slices = environment_.number("MEGASCALE_NUM_SLICES"); slices && *slices > 1)
    throw InvalidArgument("The TPU has several slices", concat("MEGASCALE_NUM_SLICES is ", *slices),
                          "Use one slice: the hosts of the other slices are not known");
  const std::size_t known = origin.hosts.empty() ? 1 : origin.hosts.size();
  if (const auto processes = product("TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS"); processes && *processes != known)
    throw InvalidArgument(
        "The TPU's variables contradict each other",
        concat("TPU_PROCESS_BOUNDS has ", *processes, " processes, but ", origin.name, " has ", known),
        "List all processes in TPU_WORKER_HOSTNAMES or TPU_PROCESS_ADDRESSES");
}

DIST_INLINE std::optional<std::string> TpuResolver::value(const char* name) const {
  std::optional<std::string> value = environment_.get(name);
  if (value && value->empty()) value.reset();
  return value;
}

DIST_INLINE std::optional<std::size_t> TpuResolver::product(const char* name, const char* former_name) const {
  const char* const variable = value(name) ? name : former_name;
  const std::optional<std::string> bounds = value(variable);
  if (!bounds) return std::nullopt;
  constexpr std::size_t most = 1'000'000;
  std::size_t product = 1;
  for (const std::string& written : detail::comma_separated(*bounds)) {
    const std::optional<std::size_t> extent = detail::whole_number(written, most);
    if (!extent || *extent == 0 || product > most / *extent)
      throw InvalidArgument(concat(variable, " is not a list of extents"), concat("it is ", quoted(*bounds)),
                            "Write the extents of the mesh, such as 2,2,1");
    product *= *extent;
  }
  return product;
}

}  // namespace dist
