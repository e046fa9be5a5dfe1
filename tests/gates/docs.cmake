# The API reference is built without a warning, and every public type, macro and member has a comment, or implements a
# contract that explains it.
find_program(DIST_DOXYGEN doxygen)
mark_as_advanced(DIST_DOXYGEN)
set(version 0)
if(DIST_DOXYGEN)
  execute_process(COMMAND "${DIST_DOXYGEN}" --version OUTPUT_VARIABLE version)
  string(REGEX MATCH "[0-9.]+" version "${version}")
endif()
if(NOT DIST_DOXYGEN)
  dist_add_skipped(gates.docs "Doxygen was not found")
elseif(version VERSION_LESS 1.9.8)
  dist_add_skipped(gates.docs "Doxygen is ${version}, and the site needs 1.9.8 or newer")
else()
  add_test(NAME gates.docs COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/docs" -DUNDOCUMENTED=ON
                                   -P "${PROJECT_SOURCE_DIR}/cmake/docs/build.cmake")
  set_tests_properties(gates.docs PROPERTIES TIMEOUT 600)
endif()
