/// Clusters and the resolvers that find them: MPI is not needed.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/cluster/cloud_resolvers.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/launcher_resolver.hpp>
#include <dist/cluster/roles.hpp>
#include <dist/cluster/slurm_resolver.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/cluster/tpu_resolver.hpp>
#include <dist/cluster/union_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>  // what callers catch
