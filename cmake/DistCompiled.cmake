# dist::compiled, dist::compiled_mpi and dist::compiled_pjrt: the parts of the library that are no templates, compiled once,
# in the build of whoever links them, with that build's flags and packages. What links them says DIST_COMPILED (and
# DIST_COMPILED_MPI, DIST_COMPILED_PJRT), so that the headers only declare those parts.

# dist_add_compiled(<name> <definition> <part>...): dist::<name>, a static library of the given <dist/<part>.ipp>, each an
# object of its own. The caller gives it its libraries.
function(dist_add_compiled name definition)
  set(sources "")
  foreach(part IN LISTS ARGN)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/dist/${part}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <dist/${part}.ipp>\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(dist_${name} STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(dist::${name} ALIAS dist_${name})
  target_compile_definitions(dist_${name} PUBLIC ${definition})
  set_target_properties(dist_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # a shared library may want it
endfunction()

# dist_compiled_targets(): the targets for the components that are there, unless an earlier call made them.
function(dist_compiled_targets)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CXX IN_LIST languages)
    return()
  endif()
  if(NOT TARGET dist_compiled)
    dist_add_compiled(compiled DIST_COMPILED compiled)
    target_link_libraries(dist_compiled PUBLIC dist::dist)
  endif()
  if(TARGET dist::mpi AND NOT TARGET dist_compiled_mpi)
    # A program that owns MPI takes nothing out of the object of the hosting part, and needs none of its packages.
    set(hosting "")
    if(TARGET dist::json AND TARGET dist::crypto AND TARGET dist::pmix)
      set(hosting compiled_hosting)
    endif()
    dist_add_compiled(compiled_mpi DIST_COMPILED_MPI compiled_mpi ${hosting})
    target_link_libraries(dist_compiled_mpi PUBLIC dist_compiled dist::mpi)
  endif()
  if(TARGET dist::pjrt AND NOT TARGET dist_compiled_pjrt)
    dist_add_compiled(compiled_pjrt DIST_COMPILED_PJRT compiled_pjrt)
    target_link_libraries(dist_compiled_pjrt PUBLIC dist_compiled dist::pjrt)
  endif()
endfunction()
