// SPDX-License-Identifier: GPL-2.0-only
//
// Where scripts come from: files, folders, and a seed.
#ifndef KMES_KMOD_IDENTITY_SOURCES_H_
#define KMES_KMOD_IDENTITY_SOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "props/script/script.h"

namespace kmes::identity {

struct Named {
    std::string name;
    props::Script script;
};

// The scripts among the files and below the folders of `paths`, by name; `others` counts files that
// are no script (corpora of fuzzers hold such, too). std::runtime_error for a path that is not
// there.
std::vector<Named> read_scripts(const std::vector<std::string>& paths, std::uint64_t* others);

// The script of a seed: of `steps` operations, of the profile that the seed says.
Named random_script(std::uint64_t seed, std::size_t steps);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_SOURCES_H_
