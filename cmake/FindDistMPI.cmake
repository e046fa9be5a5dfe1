# Finds an MPI as DistMPI::DistMPI, and sets DistMPI_FOUND, DistMPI_VERSION and DistMPI_MPIRUN.
# Open MPI is preferred where there are several, as a world without a launcher needs it; -DMPI_C_COMPILER=mpicc.mpich chooses
# MPICH.
find_package(Threads QUIET)
if(NOT MPI_C_COMPILER AND NOT DEFINED ENV{MPI_HOME})
  find_program(DistMPI_MPICC NAMES mpicc.openmpi)
  mark_as_advanced(DistMPI_MPICC)
  if(DistMPI_MPICC)
    set(MPI_C_COMPILER "${DistMPI_MPICC}" CACHE FILEPATH "the compiler wrapper of MPI")
  endif()
endif()
# Of several implementations, Debian tells the programs apart by an ending: mpicc.mpich has mpirun.mpich.
if(MPI_C_COMPILER MATCHES "mpicc([.][a-z]+)$")
  find_program(MPIEXEC_EXECUTABLE NAMES mpirun${CMAKE_MATCH_1})
endif()
# The C interface, from C++: there is no other since MPI-3. FindMPI wants the language to be enabled.
enable_language(C)
find_package(MPI QUIET COMPONENTS C)
set(DistMPI_MPIRUN "${MPIEXEC_EXECUTABLE}")

set(DistMPI_VERSION "")
if(MPI_C_FOUND)
  set(DistMPI_VERSION "${MPI_C_VERSION}")
  execute_process(COMMAND "${DistMPI_MPIRUN}" --version OUTPUT_VARIABLE dist_mpi_said ERROR_QUIET)
  if(dist_mpi_said MATCHES "(OpenRTE|Open MPI)\\) ([0-9.]+)")
    set(DistMPI_VERSION "${CMAKE_MATCH_2}")
    set(dist_mpi_name "Open MPI ")
  elseif(dist_mpi_said MATCHES "HYDRA.* Version: +([0-9.]+)")
    set(DistMPI_VERSION "${CMAKE_MATCH_1}")
    set(dist_mpi_name "MPICH ")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DistMPI REQUIRED_VARS MPI_C_FOUND VERSION_VAR DistMPI_VERSION)
if(DistMPI_FOUND AND NOT TARGET DistMPI::DistMPI)
  add_library(DistMPI::DistMPI INTERFACE IMPORTED)
  set_target_properties(DistMPI::DistMPI PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX=1;MPICH_SKIP_MPICXX=1"  # bindings that MPI-3 removed
    INTERFACE_LINK_LIBRARIES "MPI::MPI_C;Threads::Threads")
endif()
if(DistMPI_FOUND)
  set(DistMPI_VERSION "${dist_mpi_name}${DistMPI_VERSION}")
endif()
