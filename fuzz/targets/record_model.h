// SPDX-License-Identifier: MIT
//
// A second reader of record files, for small files in memory. Uses nothing of record/.
#ifndef KMES_FUZZ_TARGETS_RECORD_MODEL_H_
#define KMES_FUZZ_TARGETS_RECORD_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::fuzz {

struct ModelItem {
    std::uint32_t kind = 0;
    std::string content;

    bool operator==(const ModelItem&) const = default;
};

struct ModelBlock {
    std::uint64_t index = 0;
    std::size_t end = 0;  // offset after it
    std::string body;
    std::vector<ModelItem> items;  // those of known kinds
};

struct ModelFile {
    bool has_header = false;
    std::uint64_t file_id = 0;
    std::vector<ModelBlock> blocks;  // before the damage
    std::optional<std::size_t> damaged_at;
};

std::uint32_t model_crc32c(std::string_view bytes);
ModelFile model_file(std::string_view file);

// Returns the whole block at `offset`, whatever its index; nothing if there is none.
std::optional<ModelBlock> model_block(std::string_view file, std::size_t offset,
                                      std::uint64_t file_id);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_RECORD_MODEL_H_
