# Instruction counts of the compiler for public headers stay within the budgets of instructions.txt: unlike seconds,
# they are the same on every run. Valgrind takes half a minute for <dist/dist.hpp>, so only headers that include the
# others are counted.
find_program(DIST_VALGRIND valgrind)
mark_as_advanced(DIST_VALGRIND)
file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/gates/instructions.txt" budgets REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/gates/instructions.txt")
foreach(entry IN LISTS budgets)
  string(REGEX MATCH "^([^ ]+)( compiled)? +([0-9]+)$" entry "${entry}")
  set(header "${CMAKE_MATCH_1}")
  set(how "${CMAKE_MATCH_2}")
  set(budget "${CMAKE_MATCH_3}")
  string(REPLACE " " "." name "${header}${how}")
  set(test gates.instructions.${name})
  dist_requirements("${PROJECT_SOURCE_DIR}/include/dist/${header}")
  # Without DIST_EVERY_COMPILER, two of the five headers, which include most of the others.
  if(dist_off OR (NOT DIST_EVERY_COMPILER AND name MATCHES "^(dist.hpp.compiled|multi_worker.hpp|parameter_server.hpp.compiled)$"))
    continue()
  elseif(dist_missing)
    dist_add_skipped(${test} "the component ${dist_missing} was not found")
    continue()
  elseif(NOT DIST_VALGRIND)
    dist_add_skipped(${test} "valgrind was not found (apt install valgrind)")
    continue()
  elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
    dist_add_skipped(${test} "the budgets are for g++ 12")
    continue()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/instructions/${name}.cpp" CONTENT "#include <dist/${header}>\n" @ONLY)
  # The compile options of the header's target, without irrelevant ones.
  add_library(dist_instructions_${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/instructions/${name}.cpp")
  set(dist_form dist::header_only)
  dist_link(dist_instructions_${name} ${dist_libraries})
  if(how)
    target_compile_definitions(dist_instructions_${name} PRIVATE DIST_COMPILED)
  endif()
  set(folders "$<TARGET_PROPERTY:dist_instructions_${name},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:dist_instructions_${name},COMPILE_DEFINITIONS>")
  add_test(NAME ${test}
           COMMAND "${CMAKE_COMMAND}" "-DVALGRIND=${DIST_VALGRIND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}"
                   "-DFOLDERS=${folders}" "-DDEFINITIONS=${definitions}" "-DHEADER=${header}${how}" -DBUDGET=${budget}
                   "-DSOURCE=${CMAKE_CURRENT_BINARY_DIR}/instructions/${name}.cpp"
                   -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/instructions_check.cmake")
  set_tests_properties(${test} PROPERTIES TIMEOUT 600 COST 90)  # long, so it starts early
endforeach()
