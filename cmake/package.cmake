# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, what find_package(srd) and pkg-config read, and the Debian
# packages that `cpack` makes: libsrd0 (shared library), libsrd-dev (headers, documents, static library, CMake
# and pkg-config files), srd-tools (programs and man pages).
include(CMakePackageConfigHelpers)

set(SRD_COMPONENTS runtime dev tools)
set(SRD_PACKAGES libsrd0 libsrd-dev srd-tools)
set(SRD_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/srd)
install(TARGETS srd srd_static srd_asio EXPORT srdTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT srdTargets NAMESPACE srd:: DESTINATION ${SRD_CMAKE_DIR} COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/srd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/srd COMPONENT dev
        FILES_MATCHING PATTERN "*.md")  # the headers name TUNING.md and DRIVERS.md
foreach(component package IN ZIP_LISTS SRD_COMPONENTS SRD_PACKAGES)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright
          COMPONENT ${component})
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/srdConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/cmake/srdConfig.cmake
                              INSTALL_DESTINATION ${SRD_CMAKE_DIR})
# While the version is 0.x, only the same minor version is compatible.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/srdConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/srdConfig.cmake ${PROJECT_BINARY_DIR}/cmake/srdConfigVersion.cmake
        DESTINATION ${SRD_CMAKE_DIR} COMPONENT dev)

# The directories of srd.pc: relative ones stay relocatable with the file itself.
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(SRD_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(SRD_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
file(RELATIVE_PATH SRD_PC_UP "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" SRD_PC_UP "${SRD_PC_UP}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/srd.pc.in ${PROJECT_BINARY_DIR}/cmake/srd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/srd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(SRD_BUILD_APPS)
  # Found without ldconfig, wherever the tree is put.
  file(RELATIVE_PATH to_lib "/p/${CMAKE_INSTALL_BINDIR}" "/p/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(srd-perf srd-info PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS srd-perf srd-info RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools
          FILES_MATCHING PATTERN "*.1")
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME srd)
  set(CPACK_PACKAGE_CONTACT "OpenSRD project")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL runtime dev tools)
  set(CPACK_COMPONENTS_GROUPING IGNORE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
  set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libsrd0)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsrd-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME srd-tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION net)
  set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Reliable datagrams over many network paths: shared library")
  set(CPACK_COMPONENT_DEV_DESCRIPTION "Reliable datagrams over many network paths: development files")
  set(CPACK_COMPONENT_DEV_DEPENDS runtime)
  set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Reliable datagrams over many network paths: srd-perf, srd-info")
  set(CPACK_COMPONENT_TOOLS_DEPENDS runtime)
  include(CPack)
endif()
