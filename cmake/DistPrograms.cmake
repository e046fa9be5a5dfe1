# How the project's own programs are compiled. None of this reaches users of the library.
# g++ collects its garbage from 128 MB on; the large programs compile a tenth faster where it waits.
add_library(dist_warnings INTERFACE)
target_compile_options(dist_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  $<$<BOOL:${DIST_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2000000>)

add_library(dist_program INTERFACE)
target_link_libraries(dist_program INTERFACE dist_warnings)
# A program with the property DIST_PORTABLE runs on any processor of the architecture.
target_compile_options(dist_program INTERFACE
  $<$<AND:$<BOOL:${DIST_NATIVE}>,$<NOT:$<BOOL:$<TARGET_PROPERTY:DIST_PORTABLE>>>>:-march=native>)
# There are a thousand programs, which lld links in a third of the time.
find_program(DIST_LLD ld.lld)
mark_as_advanced(DIST_LLD)
if(DIST_LLD AND NOT CMAKE_CROSSCOMPILING)
  target_link_options(dist_program INTERFACE -fuse-ld=lld)
endif()

# dist_sanitize_thrust(<target>): after dist_requirements. Thrust's sort on the host refers to its temporary elements through
# a policy that does not exist.
function(dist_sanitize_thrust target)
  if(dist::thrust IN_LIST dist_libraries)
    target_compile_options(${target} PRIVATE -fno-sanitize=null)
  endif()
endfunction()

# dist_compiled_libraries(<file>): lets a program link the compiled parts instead of headers with all definitions, unless
# it looks into them.
function(dist_compiled_libraries file)
  file(STRINGS "${file}" internals REGEX "^#include <dist/.*\\.ipp>" LIMIT_COUNT 1)
  if(DIST_COMPILED_TESTS AND NOT internals)
    list(TRANSFORM dist_libraries REPLACE "^dist::dist$" "dist::compiled")
    list(TRANSFORM dist_libraries REPLACE "^dist::(mpi|pjrt)$" "dist::compiled_\\1")
    set(dist_libraries "${dist_libraries}" PARENT_SCOPE)
  endif()
endfunction()

# A test whose component was not found is counted as skipped; one that was switched off is left out.
function(dist_add_skipped name reason)
  add_test(NAME ${name} COMMAND sh -c "echo \"skipped: ${reason}\"; exit 77")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# The variables of the mpirun of tests and examples: as root as well, and more processes than cores. Open MPI 4 and Open MPI 5
# have different names for the latter.
set(dist_mpirun_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)
