# Finds the PMIx library as PMIx::PMIx, and sets PMIx_FOUND and PMIx_VERSION.
# Debian installs the header next to the real library, in lib/<architecture>/pmix2/include, which no compiler
# searches.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(PMIx_LIBRARY NAMES pmix PATH_SUFFIXES pmix2/lib)
if(PMIx_LIBRARY)
  get_filename_component(dist_pmix_folder "${PMIx_LIBRARY}" REALPATH)
  get_filename_component(dist_pmix_folder "${dist_pmix_folder}" DIRECTORY)
endif()
find_path(PMIx_INCLUDE_DIR pmix_server.h HINTS "${dist_pmix_folder}/../include" PATH_SUFFIXES pmix)
mark_as_advanced(PMIx_INCLUDE_DIR PMIx_LIBRARY)
dist_version_of(PMIx_VERSION "${PMIx_INCLUDE_DIR}" pmix_version.h
                PMIX_VERSION_MAJOR PMIX_VERSION_MINOR PMIX_VERSION_RELEASE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PMIx REQUIRED_VARS PMIx_LIBRARY PMIx_INCLUDE_DIR VERSION_VAR PMIx_VERSION)
if(PMIx_FOUND AND NOT TARGET PMIx::PMIx)
  add_library(PMIx::PMIx UNKNOWN IMPORTED)
  set_target_properties(PMIx::PMIx PROPERTIES IMPORTED_LOCATION "${PMIx_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${PMIx_INCLUDE_DIR}")
endif()
