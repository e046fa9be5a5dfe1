/// The parts of the library that are no templates and need no package. A program compiles this once, in a source file
/// that includes nothing else, and all its sources define DIST_COMPILED: they then compile faster, and nothing else
/// changes. In CMake, linking dist::compiled does both.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all sources of the program, or in CMake link dist::compiled, which does"
#include <dist_compiled>  // there is none, and only a missing header ends a compilation
#endif

#include <dist/cluster/address.ipp>
#include <dist/cluster/cluster_spec.ipp>
#include <dist/cluster/environment.ipp>
#include <dist/cluster/host_list.ipp>
#include <dist/cluster/launcher.ipp>
#include <dist/cluster/launcher_resolver.ipp>
#include <dist/cluster/rendezvous/machine.ipp>
#include <dist/cluster/roles.ipp>
#include <dist/cluster/slurm_resolver.ipp>
#include <dist/cluster/torchrun_resolver.ipp>
#include <dist/cluster/validate.ipp>
#include <dist/cluster/whole_number.ipp>
#include <dist/device/processor_share.ipp>
#include <dist/device/topology.ipp>
