/// Clusters and cluster resolvers, without MPI.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/cluster/cloud_resolvers.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/slurm_resolver.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/cluster/tpu_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>  // the errors that callers catch
