# Installs both libraries, the headers, the CLI, campaigns, pretrained models, the documentation, man
# pages, completions, the pkg-config file and the CMake package. The packages and the CLI find their files
# relative to their own location, so the prefix can be chosen at install time and the installed tree can be moved.
include(CMakePackageConfigHelpers)

install(TARGETS branchjepa branchjepa_static EXPORT BranchJEPATargets)
install(TARGETS bjepa)
install(DIRECTORY include/branchjepa TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(DIRECTORY campaigns DESTINATION ${CMAKE_INSTALL_DATADIR}/branchjepa
    FILES_MATCHING PATTERN "*.yaml" PATTERN "*.sh")
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/branchjepa
    FILES_MATCHING PATTERN "*.safetensors" PATTERN "*.md" PATTERN "README.md" EXCLUDE)
# The documentation keeps the layout of the source tree, because the pages link to each other.
install(FILES LICENSE NOTICE README.md CHANGELOG.md CONTRIBUTING.md TYPE DOC)
install(DIRECTORY docs TYPE DOC)
install(FILES third_party/yyjson/LICENSE TYPE DOC RENAME LICENSE.yyjson)

# Man pages and completions: section 1 and bjepa-settings(5) are written by the program itself.
if(NOT BJ_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    set(manual_dir ${PROJECT_BINARY_DIR}/manual)
    add_custom_command(OUTPUT ${manual_dir}/bjepa.1 COMMAND bjepa manual ${manual_dir}
        DEPENDS bjepa VERBATIM)
    add_custom_target(manual ALL DEPENDS ${manual_dir}/bjepa.1)
    install(DIRECTORY ${manual_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        FILES_MATCHING PATTERN "*.1")
    install(DIRECTORY ${manual_dir}/ man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man5
        FILES_MATCHING PATTERN "*.5")
    install(FILES ${manual_dir}/bjepa.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME bjepa)
    install(FILES ${manual_dir}/_bjepa DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${manual_dir}/bjepa.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH BJ_PC_TO_PREFIX /${pc_dir} /)
string(REGEX REPLACE "/$" "" BJ_PC_TO_PREFIX "${BJ_PC_TO_PREFIX}")
set(BJ_PC_CFLAGS "")
if(BJ_DOUBLE)
    set(BJ_PC_CFLAGS " -DBJ_DOUBLE")
endif()
configure_file(cmake/branchjepa.pc.in branchjepa.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/branchjepa.pc DESTINATION ${pc_dir})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/BranchJEPA)
configure_package_config_file(cmake/BranchJEPAConfig.cmake.in BranchJEPAConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BranchJEPAConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(EXPORT BranchJEPATargets NAMESPACE BranchJEPA:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/BranchJEPAConfig.cmake
              ${PROJECT_BINARY_DIR}/BranchJEPAConfigVersion.cmake
        DESTINATION ${package_dir})
