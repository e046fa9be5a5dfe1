# Programs that must not compile, with the sentence the compiler must say; see compile_fail_check.cmake.

function(dist_add_compile_fail name source)
  dist_requirements("${source}")
  if(dist_missing)
    if(NOT dist_off)
      dist_add_skipped(${name} "the component ${dist_missing} was not found")
    endif()
    return()
  endif()
  add_test(NAME ${name}
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
                   "-DSOURCE=${source}" -P "${PROJECT_SOURCE_DIR}/tests/gates/compile_fail_check.cmake")
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()

file(GLOB cases CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp")
foreach(source IN LISTS cases)
  get_filename_component(name "${source}" NAME_WE)
  dist_add_compile_fail(compile_fail.${name} "${source}")
endforeach()

# The check itself, on cases that it must refuse.
foreach(entry "control_broken=the control does not compile" "compiles=compiles, and must not"
              "other_message=fails for another reason" "no_expectation=no line '// expect: ...'")
  string(REGEX MATCH "^([a-z_]+)=(.*)$" entry "${entry}")
  set(sentence "${CMAKE_MATCH_2}")
  set(name gates.compile_fail_${CMAKE_MATCH_1})
  dist_add_compile_fail(${name} "${CMAKE_CURRENT_SOURCE_DIR}/gates/compile_fail/${CMAKE_MATCH_1}.cpp")
  set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${sentence}")
endforeach()
