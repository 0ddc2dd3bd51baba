# SPDX-License-Identifier: Apache-2.0
# Run by CPack over the staged files of both packages: what every Debian package has (copyright, changelog, compressed manual), and why lintian's
# other remarks do not hold.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(date "$ENV{SOURCE_DATE_EPOCH}")
execute_process(COMMAND date -R -u -d "@${date}" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
foreach(name stentor stentor-cli)
    set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${name})
    set(doc ${root}/usr/share/doc/${name})
    file(MAKE_DIRECTORY ${doc})
    file(COPY_FILE ${here}/copyright ${doc}/copyright)
    file(WRITE ${doc}/changelog.Debian "stentor (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) stable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}; what changed is in the history of the source.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    file(GLOB manuals ${root}/usr/share/man/man*/*.[1-8])
    execute_process(COMMAND gzip -9nf ${doc}/changelog.Debian ${manuals} COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS ${here}/${name}/lintian-overrides)
        file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
        file(COPY_FILE ${here}/${name}/lintian-overrides ${root}/usr/share/lintian/overrides/${name})
    endif()
    execute_process(COMMAND chmod -R u=rwX,go=rX ${root}/usr/share COMMAND_ERROR_IS_FATAL ANY)
endforeach()
