# Examples on GPUs: their sources with a GPU strategy instead of the original one. Each runs on fake GPUs, and nvcc
# compiles it. Types without a GPU counterpart are replaced by another type, and parts [servers] are removed. Fake GPUs
# are slow, so networks are narrower, and example 10, whose epochs do not end with the data, makes fewer steps.
set(of_cpus "dist::Mirrored<dist::ThreadAllReduce>" "dist::Mirrored<dist::RingAllReduce>"
    "dist::CentralStorage<dist::Cpu>" "dist::MultiWorker<dist::RingAllReduce>" "dist::OneDevice<dist::Cpu>"
    "dist::Default none" "nn::OwnerComputedGradients<1>" "<dist/device/thrust_policy.hpp>")
set(of_gpus "dist::Mirrored<dist::DirectAllReduce, dist::Cuda>" "dist::Mirrored<dist::ReductionToOneDevice, dist::Cuda>"
    "dist::CentralStorage<dist::Cpu, dist::Cuda>" "dist::MultiWorker<dist::NcclAllReduce>" "dist::OneDevice<dist::Cuda>"
    "dist::OneDevice<dist::Cuda> none" "nn::StoredGradients" "<dist/device/cuda/thrust_policy.cuh>")
set(policies cuda/policies cuda/policies cuda/policies
    nccl/nccl_all_reduce)  # whose headers the first ones need

set(of_real_gpus "quick() ? 20 : 70" "nn::Conv2D<32, 3, nn::Relu>, nn::MaxPool2D<2>"
    "nn::Conv2D<16, 3, nn::Relu>, nn::MaxPool2D<2>" "|| kind == \"mirrored\") run<Article>")
set(of_fake_gpus "quick() ? 5 : 70" "nn::Conv2D<4, 3, nn::Relu>, nn::MaxPool2D<2>"
    "nn::Conv2D<4, 3, nn::Relu>, nn::MaxPool2D<2>" ") run<Small>")

add_custom_target(gpu_examples)
# Programs for the GPUs of this machine: cmake/quickstart cuda.
if(DIST_GPU_PROGRAMS)
  add_custom_target(gpu_programs)
endif()

# dist_add_gpu_program(<name> <text>): a program for GPUs, which links dist_libraries.
function(dist_add_gpu_program name text)
  set(target on_gpus_${name})
  set(test example.${name}.on_gpus)
  dist_gpu_libraries(absent)
  if(absent)
    dist_add_skipped(${test} "${absent}")
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/gpu_programs/${name}.cu" CONTENT "${text}" @ONLY)
  add_executable(${target} EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/gpu_programs/${name}.cu")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/examples"
                                               "${PROJECT_SOURCE_DIR}/examples/backend/cuda"
                                               "${PROJECT_SOURCE_DIR}/examples/tpu/none")
  target_link_libraries(${target} PRIVATE ${dist_libraries})
  add_dependencies(gpu_programs ${target})
  add_test(NAME ${test} COMMAND ${target})
  set_tests_properties(${test} PROPERTIES TIMEOUT ${dist_test_timeout} RUN_SERIAL ON ENVIRONMENT DIST_EXAMPLE_QUICK=1)
endfunction()

# dist_add_gpu_example(<name> <launcher>...): the launcher starts the example as several processes. Each needs a GPU,
# which this machine may not have.
function(dist_add_gpu_example name)
  set(source "${PROJECT_SOURCE_DIR}/examples/${name}.cpp")
  set(changed "${CMAKE_CURRENT_BINARY_DIR}/gpu_examples/${name}.cpp")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(READ "${source}" of_source)
  set(text "${of_source}")
  set(headers "#include <dist/device/cuda/device.cuh>\n")
  foreach(type replacement policy IN ZIP_LISTS of_cpus of_gpus policies)
    string(REPLACE "${type}" "${replacement}" changed_text "${text}")
    if(policy AND NOT changed_text STREQUAL text)
      string(PREPEND headers "#include <dist/comm/${policy}.cuh>\n")
    endif()
    set(text "${changed_text}")
  endforeach()
  if("${text}" STREQUAL "${of_source}")
    message(FATAL_ERROR "${source} names no strategy that has a counterpart on GPUs.")
  endif()
  string(REGEX REPLACE "// \\[servers\\].*// \\[/servers\\]" "" text "${text}")
  set(of_fakes "${text}")
  foreach(part replacement IN ZIP_LISTS of_real_gpus of_fake_gpus)
    string(REPLACE "${part}" "${replacement}" of_fakes "${of_fakes}")
  endforeach()
  file(CONFIGURE OUTPUT "${changed}" CONTENT "${headers}${of_fakes}" @ONLY)
  dist_requirements("${changed}")
  if(dist_off)
    return()
  elseif(dist_missing)
    dist_add_skipped(example.${name}.gpus "the component ${dist_missing} was not found")
    return()
  endif()
  if(text MATCHES "\"backend\\.hpp\"")  # it includes Cuda's, but dist_requirements reads the example alone
    list(APPEND dist_libraries dist::nn_cuda)
  endif()
  set(target gpu_example_${name})
  add_executable(${target} "${changed}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/examples"
                                               "${PROJECT_SOURCE_DIR}/examples/backend/cuda"
                                               "${PROJECT_SOURCE_DIR}/examples/tpu/none")
  dist_link(${target} ${dist_libraries} dist_program)
  dist_link_fakes(${target} ${dist_libraries})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_compile_definitions(${target} PRIVATE DIST_CONTRACT_LEVEL=2)  # as what it links
  add_dependencies(gpu_tests ${target})
  add_dependencies(gpu_examples ${target})
  add_test(NAME example.${name}.gpus COMMAND ${ARGN} $<TARGET_FILE:${target}>)
  # The same program for CPUs may write to the same folder.
  set_tests_properties(example.${name}.gpus PROPERTIES TIMEOUT ${dist_test_timeout} LABELS gpus
                       RESOURCE_LOCK example.${name} ENVIRONMENT "DIST_FAKE_CUDA=2 lazy;DIST_EXAMPLE_QUICK=1;DIST_WARNINGS=0")
  if(ARGN)
    set_tests_properties(example.${name}.gpus PROPERTIES PROCESSORS 2)
  endif()
  set_property(GLOBAL APPEND PROPERTY dist_gpu_examples "${changed}")
  if(DIST_GPU_PROGRAMS AND NOT ARGN)
    dist_add_gpu_program(${name} "${headers}${text}")
  endif()
endfunction()

# Examples that read no files.
foreach(name IN ITEMS 01_hello_replicas 02_variables_and_contexts 05_conjugate_gradient 06_monte_carlo
        08_values_and_structures 13_particles_in_cells)
  dist_add_gpu_example(${name})
endforeach()
if(DIST_HAVE_NN_CUDA)
  dist_add_gpu_example(07_choose_a_strategy)
  dist_add_gpu_example(19_resnet)
endif()
if(TARGET gpu_example_19_resnet)
  get_property(environment TEST example.19_resnet.gpus PROPERTY ENVIRONMENT)
  add_test(NAME example.19_resnet.central.gpus COMMAND gpu_example_19_resnet central)
  add_test(NAME example.19_resnet.workers.gpus COMMAND ${dist_mpirun} -n 2 $<TARGET_FILE:gpu_example_19_resnet> workers)
  set_tests_properties(example.19_resnet.central.gpus example.19_resnet.workers.gpus PROPERTIES
                       TIMEOUT ${dist_test_timeout} LABELS gpus PROCESSORS 2 ENVIRONMENT "${environment}")
endif()
# Examples that train with Fashion-MNIST use their own files, because fake GPUs are slow.
if(DIST_HAVE_NN_CUDA AND DIST_HAVE_GZIP)
  include(support/small_fashion_mnist.cmake)
  add_dependencies(gpu_tests dist_small_fashion_mnist)
  add_dependencies(gpu_examples dist_small_fashion_mnist)
  if(DIST_GPU_PROGRAMS)
    add_dependencies(gpu_programs dist_small_fashion_mnist)
  endif()
  foreach(name IN ITEMS 03_custom_training_loop 04_model_fit 10_multi_worker 17_fit_with_callbacks
          18_restart_from_checkpoint)
    set(launcher "")
    if(name MATCHES "^1[08]_")
      set(launcher ${dist_mpirun} -n 2)
    endif()
    dist_add_gpu_example(${name} ${launcher})
    if(NOT TARGET gpu_example_${name})
      continue()
    endif()
    dist_link(gpu_example_${name} dist::gzip)
    set(tests example.${name}.gpus)
    if(TARGET on_gpus_${name})
      target_link_libraries(on_gpus_${name} PRIVATE dist::gzip)
      list(APPEND tests example.${name}.on_gpus)
    endif()
    set_tests_properties(${tests} PROPERTIES FIXTURES_REQUIRED small_fashion_mnist)
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT "DIST_FASHION_MNIST_DIR=${dist_small_fashion_mnist_dir}")
  endforeach()
endif()
if(DIST_GPU_PROGRAMS AND NOT TARGET on_gpus_07_choose_a_strategy)
  message(STATUS "no programs with networks: cuBLAS or cuDNN was not found")  # cmake/quickstart looks for it
endif()
