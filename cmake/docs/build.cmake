# Builds the API reference and the pages as a site, in OUTPUT/html:
#
#   cmake -DOUTPUT=FOLDER [-DUNDOCUMENTED=ON] -P cmake/docs/build.cmake
#
# Fails if Doxygen warns. UNDOCUMENTED: also fails for public types, macros and members without a comment, except members
# that contract_members.txt names, and for names there that no member needs.
cmake_minimum_required(VERSION 3.25)
get_filename_component(project "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(NOT OUTPUT)
  message(FATAL_ERROR "docs: name the folder of the site: cmake -DOUTPUT=FOLDER -P cmake/docs/build.cmake")
endif()
get_filename_component(OUTPUT "${OUTPUT}" ABSOLUTE)

# Doxygen before 1.9.8 does not show members that a class inherits from a template, such as `run` of a strategy.
find_program(doxygen doxygen)
set(version 0)
if(doxygen)
  execute_process(COMMAND "${doxygen}" --version OUTPUT_VARIABLE version)
  string(REGEX MATCH "[0-9.]+" version "${version}")
endif()
if(version VERSION_LESS 1.9.8)
  set(found "was not found")
  if(doxygen)
    set(found "is ${version}")
  endif()
  message(FATAL_ERROR "docs: Doxygen ${found}, and the site needs 1.9.8 or newer (Debian 13: apt install doxygen). "
                      "On Debian 12, build the site on a minimal Debian 13: cmake/on_debian trixie runs a command there.")
endif()

# The style is doxygen-awesome of PyPI, one CSS file. Without it, the site has Doxygen's own style.
set(style_folder "${OUTPUT}/style")
file(GLOB_RECURSE style "${style_folder}/*doxygen-awesome.css")
find_program(pip NAMES pip3 pip PATHS "${project}/build/python/bin")
if(pip AND NOT style)
  execute_process(COMMAND "${pip}" install --quiet --no-deps --disable-pip-version-check --target "${style_folder}"
                          doxygen-awesome-css==2.4.1rc0
                  OUTPUT_QUIET ERROR_QUIET)
  file(GLOB_RECURSE style "${style_folder}/*doxygen-awesome.css")
endif()
if(NOT style)
  message("docs: doxygen-awesome-css of PyPI is not available; the site has Doxygen's own style")
endif()

file(READ "${project}/include/dist/core/config.hpp" config)
string(REGEX MATCH "DIST_VERSION_MAJOR ([0-9]+).*DIST_VERSION_MINOR ([0-9]+).*DIST_VERSION_PATCH ([0-9]+)" found "${config}")
set(number "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
file(GLOB pages RELATIVE "${project}" "${project}/*.md" "${project}/examples/*.md" "${project}/benchmarks/*.md"
     "${project}/tests/*.md")
list(JOIN pages " " pages)
# The files that pages show or link to, and that these include.
file(GLOB files RELATIVE "${project}" "${project}/examples/*.cpp" "${project}/examples/*.hpp"
     "${project}/examples/backend/reference/backend.hpp" "${project}/examples/tpu/none/tpu.hpp" "${project}/benchmarks/*.svg"
     "${project}/cmake/packages.txt")
list(JOIN files " " files)

# remove_contract_members(<variable>): removes the warnings about members that contract_members.txt names from the list of
# warnings in the variable, and adds one for each name without such a member.
function(remove_contract_members variable)
  set(warnings ${${variable}})
  file(STRINGS "${project}/cmake/docs/contract_members.txt" lines REGEX "^[^#]")
  foreach(line IN LISTS lines)
    if(line MATCHES "^internal ([^ ]+)$")
      set(names "${CMAKE_MATCH_1}")
      set(before "warning: Member .* of [a-z]+ ")
      set(after "(::|<| )")
    elseif(line MATCHES "^([^ ]+)( in ([^ ]+))?: (.+)$")
      string(REPLACE " " ";" names "${CMAKE_MATCH_4}")
      set(before "/include/dist/${CMAKE_MATCH_3}.*: warning: Member ")
      set(after "[[( ]")
      if(NOT EXISTS "${project}/include/dist/${CMAKE_MATCH_1}")
        list(APPEND ${variable} "cmake/docs/contract_members.txt: '${CMAKE_MATCH_1}' is not a header")
      endif()
    else()
      message(FATAL_ERROR "docs: cmake/docs/contract_members.txt has an invalid line: ${line}")
    endif()
    foreach(name IN LISTS names)
      string(REGEX REPLACE "([][()*+.])" "\\\\\\1" pattern "${name}")
      set(members ${warnings})
      list(FILTER members INCLUDE REGEX "${before}${pattern}${after}")
      if(members)
        list(REMOVE_ITEM ${variable} ${members})
      else()
        list(APPEND ${variable} "cmake/docs/contract_members.txt: '${name}' is not needed (${line})")
      endif()
    endforeach()
  endforeach()
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# build_site(<undocumented YES or NO>): fails with the warnings that Doxygen writes.
function(build_site undocumented)
  set(shown YES)
  set(hidden YES)
  if(undocumented)
    set(shown NO)
    set(hidden NO)
  endif()
  configure_file("${project}/cmake/docs/Doxyfile.in" "${OUTPUT}/Doxyfile" @ONLY)
  file(REMOVE "${OUTPUT}/warnings.log")
  execute_process(COMMAND "${doxygen}" "${OUTPUT}/Doxyfile" WORKING_DIRECTORY "${project}" RESULT_VARIABLE status
                  OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "docs: doxygen ended with status ${status}; its configuration is ${OUTPUT}/Doxyfile")
  endif()
  file(STRINGS "${OUTPUT}/warnings.log" warnings)
  if(undocumented)
    list(FILTER warnings INCLUDE REGEX "is not documented")
    remove_contract_members(warnings)
  endif()
  list(LENGTH warnings count)
  if(count GREATER 0)
    list(JOIN warnings "\n" warnings)
    string(REPLACE "${project}/" "" warnings "${warnings}")
    message(FATAL_ERROR "docs: ${count} warnings:\n${warnings}")
  endif()
endfunction()

if(UNDOCUMENTED)
  build_site(YES)
endif()
build_site(NO)
message("docs: ${OUTPUT}/html/index.html")
