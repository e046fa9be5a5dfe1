# Compile settings for the project's own programs. Users of the library do not get them.
# Less frequent garbage collection in g++ (its default is at 128 MB) compiles the large programs 10 % faster.
add_library(dist_warnings INTERFACE)
target_compile_options(dist_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  $<$<BOOL:${DIST_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2000000>)

add_library(dist_program INTERFACE)
target_link_libraries(dist_program INTERFACE dist_warnings)
# Programs with the property DIST_PORTABLE run on any processor of the architecture.
target_compile_options(dist_program INTERFACE
  $<$<AND:$<BOOL:${DIST_NATIVE}>,$<NOT:$<BOOL:$<TARGET_PROPERTY:DIST_PORTABLE>>>>:-march=native>)
# lld links the thousand programs in a third of the time.
find_program(DIST_LLD ld.lld)
mark_as_advanced(DIST_LLD)
if(DIST_LLD AND NOT CMAKE_CROSSCOMPILING)
  target_link_options(dist_program INTERFACE -fuse-ld=lld)
endif()

# dist_sanitize_thrust(<target>): to be called after dist_requirements. Thrust's sort on the host accesses its
# temporary elements through a null policy.
function(dist_sanitize_thrust target)
  if(dist::thrust IN_LIST dist_libraries)
    target_compile_options(${target} PRIVATE -fno-sanitize=null)
  endif()
endfunction()

# The library in three forms, by library prefix: dist_compiled is dist::dist; dist_tested has its compiled parts with
# contracts and without optimisation, for tests; dist::header_only has no compiled parts.
if(DIST_HAVE_TESTS OR NOT DIST_OPTIMISED)
  dist_add_compiled(dist_tested "${PROJECT_SOURCE_DIR}/include")
endif()
get_property(parts GLOBAL PROPERTY dist_parts_of_dist_compiled)
get_property(tested_parts GLOBAL PROPERTY dist_parts_of_dist_tested)
foreach(part IN LISTS parts tested_parts)
  target_link_libraries(${part} PRIVATE dist_program)
endforeach()
foreach(part IN LISTS tested_parts)
  target_compile_definitions(${part} PRIVATE DIST_CONTRACT_LEVEL=2)
  target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-O0>)
endforeach()
set(dist_form dist_compiled)
if(DIST_HEADER_ONLY)
  set(dist_form dist::header_only)
elseif(NOT DIST_OPTIMISED)
  set(dist_form dist_tested)
endif()

# dist_form_of_test(<file>): sets dist_form for a test: header-only if it includes definitions itself.
function(dist_form_of_test file)
  file(STRINGS "${file}" internals REGEX "^#include <dist/.*\\.ipp>" LIMIT_COUNT 1)
  set(dist_form dist_tested PARENT_SCOPE)
  if(internals OR DIST_HEADER_ONLY)
    set(dist_form dist::header_only PARENT_SCOPE)
  endif()
endfunction()

# dist_link(<target> <library>...): links dist::dist and dist::<component> in the form dist_form, and other libraries.
function(dist_link target)
  list(TRANSFORM ARGN REPLACE "^dist::([a-z_]+)$" "${dist_form}_\\1")
  list(TRANSFORM ARGN REPLACE "^${dist_form}_dist$" "${dist_form}")
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()

# A test whose component was not found is reported as skipped. If the component is switched off, the test is left out.
function(dist_add_skipped name reason)
  add_test(NAME ${name} COMMAND sh -c "echo \"skipped: ${reason}\"; exit 77")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# Environment of mpirun in tests and examples: it may run as root, and with more processes than cores. The name of the
# latter setting differs between Open MPI 4 and 5.
set(dist_mpirun_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)
