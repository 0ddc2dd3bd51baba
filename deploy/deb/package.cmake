# SPDX-License-Identifier: Apache-2.0
# Two packages of what `cmake --install` puts under /usr: deploy/deb/build makes them, README.md says why they are so.
if(NOT EXISTS /etc/debian_version)
    return()
endif()
find_program(DPKG dpkg)
find_program(GZIP gzip)
if(NOT DPKG OR NOT GZIP)
    return()
endif()
file(STRINGS /etc/os-release debian REGEX "^VERSION_ID=")
string(REGEX REPLACE "[^0-9]" "" debian "${debian}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stentor)
set(CPACK_PACKAGE_VERSION ${STENTOR_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~deb${debian})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL stentor stentor-cli)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(STENTOR_PACKAGER "Stentor <packages@stentor.test>" CACHE STRING "Who makes the packages: Name <address>")
set(CPACK_PACKAGE_CONTACT ${STENTOR_PACKAGER})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEBIAN_STENTOR_PACKAGE_NAME stentor)
set(CPACK_DEBIAN_STENTOR_PACKAGE_SECTION net)
# CPack makes lists of what has a semicolon, and takes quotes away.
set(CPACK_COMPONENT_STENTOR_DESCRIPTION "event-sourced notification pipeline, services
A service asks Stentor to tell a recipient something. Stentor decides whether,
when and in which words, delivers it, hears what became of it, and remembers.
.
This package has the services, their systemd units, the migrations of the
database, the configuration of nginx, and examples. Nothing is started before
stentor init has written a configuration and a service is enabled.")
set(CPACK_DEBIAN_STENTOR_PACKAGE_DEPENDS "stentor-cli (= ${version}), ca-certificates")
set(CPACK_DEBIAN_STENTOR_PACKAGE_RECOMMENDS "nats-server (>= 2.9.10), postgresql (>= 15), nginx")
set(CPACK_DEBIAN_STENTOR_PACKAGE_SUGGESTS "prometheus")
set(scripts ${CMAKE_CURRENT_LIST_DIR}/stentor)
set(CPACK_DEBIAN_STENTOR_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)

set(CPACK_DEBIAN_STENTOR-CLI_PACKAGE_NAME stentor-cli)
set(CPACK_DEBIAN_STENTOR-CLI_PACKAGE_SECTION net)
set(CPACK_COMPONENT_STENTOR-CLI_DESCRIPTION "event-sourced notification pipeline, command line
The command stentor sends notifications and manages templates, recipients,
tenants and keys over the HTTP interface of an installation, and operates one:
doctor, audit, dead letters, replay.
.
It has the manual page and the completions for bash, zsh and fish.")
set(CPACK_DEBIAN_STENTOR-CLI_PACKAGE_DEPENDS "ca-certificates")
set(CPACK_DEBIAN_STENTOR-CLI_PACKAGE_SUGGESTS "stentor")

# What Debian wants of every package, and CMake does not make: deploy/deb/finish.cmake writes it between the installation and the archive.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)
include(CPack)
