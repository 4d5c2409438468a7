// SPDX-License-Identifier: MIT
//
// See record.h.
#include "fuzz/targets/record.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/record_model.h"
#include "record/reader.h"

namespace kmes::fuzz {
namespace {

using record::Block;
using record::Item;
using record::ItemKind;
using record::Reader;
using record::ReadResult;

constexpr std::uint64_t kFileId = 0x0123456789abcdef;
// The rarity of unusual values among the choices.
constexpr std::uint64_t kSeldom = 16;

template <typename T>
void put(std::string* to, T value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    to->append(bytes, sizeof(value));
}

// -- A file from choices --------------------------------------------------------------------------

std::string sealed(std::string header) {
    put(&header, model_crc32c(header));
    return header;
}

std::string make_header(FuzzedBytes* choices) {
    std::string header = "KMESREC\n";
    put(&header, static_cast<std::uint32_t>(2 - choices->below(3)));
    put(&header, std::uint32_t{64});
    put(&header, kFileId);
    for (int i = 0; i < 3; ++i)
        put(&header, choices->take<std::uint8_t>() * std::uint64_t{1} << 56);
    put(&header, static_cast<std::uint32_t>(3 - choices->below(4)));
    put(&header, std::uint32_t{1});
    put(&header, static_cast<std::uint32_t>(choices->below(kSeldom) == 1 ? 2 : 1));
    return sealed(header);
}

std::string make_event(FuzzedBytes* choices) {
    const std::string_view type = choices->piece(1 + choices->below(8));
    const std::string_view payload = choices->piece(choices->below(32));
    // Occasionally the header has a wrong size.
    const std::uint64_t wrong = choices->below(kSeldom);
    std::string event;
    put(&event, static_cast<std::uint32_t>(29 + type.size() + payload.size() + (wrong == 1)));
    put(&event, static_cast<std::uint32_t>(29 + type.size() + (wrong == 2)));
    put(&event, choices->take<std::uint64_t>());
    put(&event, choices->take<std::uint64_t>());
    put(&event, choices->take<std::uint16_t>());
    put(&event, choices->take<std::uint8_t>());
    put(&event, static_cast<std::uint16_t>(type.size() + (wrong == 3)));
    event += type;
    return event.append(payload);
}

std::string make_item(FuzzedBytes* choices) {
    const auto kind = static_cast<std::uint32_t>(choices->below(5));
    std::string content;
    if (kind == 1) {
        content = make_event(choices);
    } else if (kind == 2 || kind == 3) {
        put(&content, std::uint64_t{choices->take<std::uint8_t>()});
        put(&content, choices->take<std::uint64_t>());
        if (kind == 2) put(&content, choices->take<std::uint64_t>());
        if (choices->below(kSeldom) == 1) content.pop_back();
    } else {
        content = choices->piece(choices->below(16));
    }
    std::string item;
    put(&item, kind);
    put(&item, static_cast<std::uint32_t>(content.size() + (choices->below(kSeldom) == 1)));
    return item + content;
}

std::string make_block(FuzzedBytes* choices, std::uint64_t index) {
    const std::uint64_t count = choices->below(5);
    std::string body;
    for (std::uint64_t i = 0; i < count; ++i) body += make_item(choices);
    std::string block = "KBLK";
    put(&block, static_cast<std::uint32_t>(body.size()));
    put(&block, choices->below(kSeldom) == 1 ? kFileId + 1 : kFileId);
    put(&block, index + (choices->below(kSeldom) == 1));
    put(&block, static_cast<std::uint32_t>(count + (choices->below(kSeldom) == 1)));
    put(&block, model_crc32c(body));
    put(&block, std::uint32_t{0});
    return sealed(block) + body;
}

void edit(FuzzedBytes* choices, std::string* file) {
    const std::size_t at = choices->below(file->size() + 1);
    switch (choices->below(4)) {
        case 0:
            file->resize(at);
            break;
        case 1:
            if (at < file->size())
                (*file)[at] = static_cast<char>((*file)[at] ^ choices->take<char>());
            break;
        case 2:
            file->erase(at, choices->below(64));
            break;
        default:
            file->insert(at, std::string(*file, choices->below(file->size() + 1), 128));
            break;
    }
}

std::string make_file(FuzzedBytes* choices) {
    std::string file = make_header(choices);
    const std::uint64_t blocks = choices->below(5);
    for (std::uint64_t i = 0; i < blocks; ++i) file += make_block(choices, i);
    const std::uint64_t edits = choices->below(4);
    for (std::uint64_t i = 0; i < edits; ++i) edit(choices, &file);
    return file;
}

// -- The items of the reader ----------------------------------------------------------------------

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Converts an item of the reader to the form in the block.
ModelItem model_of(const Item& item) {
    ModelItem model = {static_cast<std::uint32_t>(item.kind), ""};
    if (item.kind == ItemKind::kEvent) {
        model.content = text_of(item.event_bytes);
        expect_equal(item.event.event_size, item.event_bytes.size(), "the size of an event");
    } else if (item.kind == ItemKind::kLoss) {
        put(&model.content, std::uint64_t{item.loss.cpu});
        put(&model.content, item.loss.first_sequence);
        put(&model.content, item.loss.count);
    } else {
        put(&model.content, std::uint64_t{item.session.cpu});
        put(&model.content, item.session.session);
    }
    return model;
}

// The six bytes after the CPU are 0 in a correct writer's file, and the reader does not return
// them.
void clear_padding(ModelItem* item) {
    if (item->kind == 2 || item->kind == 3) std::fill_n(item->content.begin() + 2, 6, '\0');
}

void check_block(const Block& block, ModelBlock right) {
    expect(text_of(block.body) == right.body, "the body of a block is another one");
    expect_equal(block.index, right.index, "the index of a block");
    record::ItemCursor items(block.body);
    Item item;
    std::size_t count = 0;
    while (items.next(&item)) {
        expect(count < right.items.size(), "a block has more items than it should");
        clear_padding(&right.items[count]);
        expect(model_of(item) == right.items[count], "an item is another one");
        ++count;
    }
    expect(!items.is_broken(), "a whole block is broken");
    expect_equal(count, right.items.size(), "the number of items");
}

void check_line(const std::string& line) {
    const bool is_plain =
        std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
    expect(!line.empty() && is_plain, "what is wrong is not one line: " + line);
}

// Blocks after the damage must be whole blocks of the file, with rising indexes.
void check_rest(Reader* reader, std::string_view file, const ModelFile& model) {
    std::uint64_t least = model.blocks.size();
    for (std::size_t at = *model.damaged_at; reader->skip_damage();) {
        Block block;
        expect(reader->next(&block) == ReadResult::kBlock, "no block follows the damage");
        do {
            std::optional<ModelBlock> right;
            while (at < file.size() && !right) {
                right = model_block(file, at, model.file_id);
                if (right && right->index != block.index) right.reset();
                if (!right) ++at;
            }
            expect(right.has_value(), "a block after the damage is none of the file");
            expect(right->index >= least, "a block after the damage is an earlier one");
            least = right->index + 1;
            at = right->end;
            check_block(block, std::move(*right));
        } while (reader->next(&block) == ReadResult::kBlock);
    }
}

void check_file(std::string_view file) {
    const ModelFile model = model_file(file);
    Reader reader;
    std::string wrong;
    const bool is_open = reader.open(record::source_of(std::as_bytes(std::span(file))), &wrong);
    expect(is_open == model.has_header, "the header is judged wrongly: " + wrong);
    if (!is_open) return check_line(wrong);
    Block block;
    for (const ModelBlock& right : model.blocks) {
        expect(reader.next(&block) == ReadResult::kBlock, "a whole block is not read");
        check_block(block, right);
    }
    for (int again = 0; again < 2; ++again)
        expect(reader.next(&block) == (model.damaged_at ? ReadResult::kDamage : ReadResult::kEnd),
               "the end is not where the whole blocks end");
    if (!model.damaged_at) return;
    expect_equal(reader.damage().offset_bytes, *model.damaged_at, "the offset of the damage");
    check_line(reader.damage().what);
    check_rest(&reader, file, model);
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_record(const std::uint8_t* data, std::size_t size) {
    using namespace kmes::fuzz;
    FuzzedBytes choices(data, size);
    const bool is_raw = choices.below(2) == 1;
    const std::string file = is_raw ? std::string(choices.rest()) : make_file(&choices);
    // In a separate allocation, so that a read beyond the end is noticed.
    const auto copy = std::make_unique<char[]>(file.size());
    if (!file.empty()) std::memcpy(copy.get(), file.data(), file.size());
    check_file({copy.get(), file.size()});
    return 0;
}
