// SPDX-License-Identifier: GPL-2.0-only
//
// The sources of scripts: files, folders, and a seed.
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

// Returns the scripts among the files of `paths` and in its folders, sorted by name. `others`
// counts files that are not scripts (corpora of fuzzers have some). Throws std::runtime_error for a
// missing path.
std::vector<Named> read_scripts(const std::vector<std::string>& paths, std::uint64_t* others);

// Returns the script of a seed, with `steps` operations. The seed also determines the profile.
Named random_script(std::uint64_t seed, std::size_t steps);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_SOURCES_H_
