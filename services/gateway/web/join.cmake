# SPDX-License-Identifier: Apache-2.0
# Joins modules (FILES, those that others import first) into one (OUT): their imports of each other and their exports go, but for the last one's
# list of names. A line is an import or not, so each stands on one line.
set(joined "")
foreach(file ${FILES})
    file(READ ${file} text)
    string(REPLACE "// SPDX-License-Identifier: Apache-2.0\n" "" text "${text}")
    string(REGEX REPLACE "\nimport [^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\nexport ([a-z])" "\n\\1" text "${text}")
    string(APPEND joined "${text}")
endforeach()
file(WRITE ${OUT} "// SPDX-License-Identifier: Apache-2.0\n${joined}")
