# SPDX-License-Identifier: Apache-2.0
# How targets of this project are made: warnings, sanitizers, include roots. Sources are found by
# folder, so adding a file needs no edit here.
include(GNUInstallDirs)

set(SRD_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wimplicit-fallthrough
                 $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)

function(srd_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20 c_std_99)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE ${SRD_WARNINGS} $<$<BOOL:${SRD_WERROR}>:-Werror>)
  if(SRD_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SRD_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${SRD_SANITIZE})
  endif()
endfunction()

# srd_layer(NAME DIR...): one layer as an object library, in the shared library and in the tests.
function(srd_layer name)
  set(sources)
  foreach(dir IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  add_library(srd_${name} OBJECT ${sources})
  srd_configure(srd_${name})
  target_include_directories(srd_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>)
  target_compile_definitions(srd_${name} PRIVATE SRD_BUILD)
endfunction()
