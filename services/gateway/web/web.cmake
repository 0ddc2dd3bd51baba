# SPDX-License-Identifier: Apache-2.0
# Files of the gateway's web pages, as bytes of the program (README.md): what is written by hand always; what npm's esbuild bundles, where
# Node.js and the packages of package-lock.json are. A list of them ("path|file|type|kind") becomes web_table.c, with SHA-256, gzip and brotli.
set(web ${CMAKE_CURRENT_SOURCE_DIR}/gateway/web)
set(made ${CMAKE_BINARY_DIR}/web)
file(MAKE_DIRECTORY ${made})
set(inbox strings.js style.js session.js element.js inbox.js preferences.js index.js)
find_program(STENTOR_GZIP gzip REQUIRED)

set(rows "/inbox/stentor-inbox.js|${made}/stentor-inbox.js|text/javascript; charset=utf-8|WEB_MODULE\n")
string(APPEND rows "/console/preview|${web}/console/preview.html|text/html; charset=utf-8|WEB_FRAME\n")
file(CONFIGURE OUTPUT ${made}/hand.rows CONTENT "${rows}" @ONLY)
set(lists ${made}/hand.rows)
list(TRANSFORM inbox PREPEND ${web}/inbox/)
add_custom_command(OUTPUT ${made}/stentor-inbox.js DEPENDS ${inbox} ${web}/join.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DFILES=${inbox}" -DOUT=${made}/stentor-inbox.js -P ${web}/join.cmake
    COMMENT "Joining the inbox's web components")

# Once for each lock file: the packages stay in the build folder, where no search for sources looks.
find_program(STENTOR_NODE node)
find_program(STENTOR_NPM npm)
file(SHA256 ${web}/package-lock.json lock)
set(STENTOR_WEB_BUNDLES OFF)
if(NOT STENTOR_NODE OR NOT STENTOR_NPM)
    message(STATUS "gateway: without the pages that need Node.js to be built (apt-get install nodejs npm)")
elseif(EXISTS ${made}/npm-${lock})
    set(STENTOR_WEB_BUNDLES ON)
else()
    file(COPY ${web}/package.json ${web}/package-lock.json DESTINATION ${made})
    execute_process(COMMAND ${STENTOR_NPM} ci --ignore-scripts --no-audit --no-fund --fetch-retries=0 WORKING_DIRECTORY ${made}
        TIMEOUT 180 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
    if(failed)
        string(REGEX MATCH "npm (ERR!|error) [^\n]*" why "${why}")
        message(STATUS "gateway: without the pages that need npm's packages (npm ci: ${why}); cmake asks again when it runs again")
    else()
        file(TOUCH ${made}/npm-${lock})
        set(STENTOR_WEB_BUNDLES ON)
    endif()
endif()

if(STENTOR_WEB_BUNDLES)
    file(GLOB_RECURSE bundled CONFIGURE_DEPENDS ${web}/demo/* ${web}/console/*)
    add_custom_command(OUTPUT ${made}/bundle.rows DEPENDS ${bundled} ${web}/bundle.mjs ${made}/npm-${lock} VERBATIM
        COMMAND ${STENTOR_NODE} ${web}/bundle.mjs ${made} ${web}/demo/demo.html=/inbox/demo
            ${web}/console/console.html=/console/
        COMMENT "Bundling the gateway's pages")
    list(APPEND lists ${made}/bundle.rows)
endif()
add_custom_command(OUTPUT ${made}/web_table.c DEPENDS ${lists} ${made}/stentor-inbox.js ${web}/console/preview.html ${web}/pack.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DLISTS=${lists}" -DMADE=${made} -DGZIP=${STENTOR_GZIP} -P ${web}/pack.cmake
    COMMENT "Packing the gateway's web files")
# Symbols of an assembler's line are not for link-time optimisation.
set_source_files_properties(${made}/web_table.c PROPERTIES COMPILE_OPTIONS -fno-lto)
target_sources(svc_gateway PRIVATE ${made}/web_table.c)
