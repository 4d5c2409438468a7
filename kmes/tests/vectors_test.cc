// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reference reader on every image of conformance/vectors, in its three ways to read, for each
 * form of the layout; and each image compared with its source of bytes in hex.
 */
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

namespace fs = std::filesystem;

/* Form C has the bytes of form D, so its reader reads the vectors of D. */
const char* const kFolders[] = {"conformance/vectors", "conformance/vectors/form-b",
                                "conformance/vectors/form-d", "conformance/vectors/form-d"};
const char* const kForms[] = {"A", "B", "D", "D"};
const char* const kFolder = kFolders[KMES_LAYOUT - 1];

std::vector<std::uint8_t> file_bytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> all_vectors() {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(kFolder)) {
        if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

fs::path with_extension(fs::path path, const char* extension) {
    return path.replace_extension(extension);
}

/* Does the same as assemble.py: it only places bytes. */
std::vector<std::uint8_t> assembled(const fs::path& source) {
    std::ifstream file(source);
    std::vector<std::uint8_t> image;
    for (std::string line; std::getline(file, line);) {
        line = line.substr(0, line.find('#'));
        if (line.starts_with("size ")) image.resize(std::stoul(line.substr(5)));
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::size_t at = std::stoul(line);
        std::istringstream words(line.substr(colon + 1));
        std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
        if (row.size() == 3 && row[1] == "x") row.assign(std::stoul(row[2]), row[0]);
        for (const std::string& byte : row)
            image.at(at++) = static_cast<std::uint8_t>(std::stoul(byte, nullptr, 16));
    }
    return image;
}

/* The image as a buffer: the data twice, with a page that faults after it (ring_memory.h). */
class ImageBuffer {
  public:
    ImageBuffer(const std::vector<std::uint8_t>& image, std::uint64_t capacity_bytes)
        : memory_(capacity_bytes) {
        memcpy(memory_.base(), image.data(), image.size());
        config.attach_functions = {attach, attach, [](void*, kmes_mapping*) {}, &memory_};
        config.stop_on_corrupt = true;
    }

    kmes_reader_config config{};

  private:
    static int attach(void* context, __u16, kmes_mapping* mapping) {
        auto* memory = static_cast<RingMemory*>(context);
        *mapping = {};
        mapping->base = memory->base();
        mapping->mapped_bytes = memory->mapped_bytes();
        return 0;
    }

    RingMemory memory_;
};

std::string hex(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) {
        char digits[3];
        snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
        text += digits;
    }
    return text;
}

/* testee-contract.md: 64-bit FNV-1a. */
std::string digest(const std::string& payload) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : payload)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    char digits[17];
    snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

struct Result {
    std::vector<std::string> records;
    std::string ends;

    void add(const Delivered& event) {
        if (event.lost_before) records.push_back("L 0 " + std::to_string(event.lost_before));
        records.push_back("E 0 " + std::to_string(event.sequence) + " " +
                          std::to_string(event.timestamp) + " " +
                          std::to_string(event.origin_class) + " " + hex(event.type) + " " +
                          std::to_string(event.payload.size()) + " " + digest(event.payload));
    }
};

enum class ReadWay { kNext, kPeek, kBulk };

int read_all(kmes_reader& reader, ReadWay way, Result& result) {
    static std::uint8_t room[1 << 20];
    kmes_event_view view;
    kmes_bulk bulk;
    for (;;) {
        int found = 0;
        if (way == ReadWay::kNext) {
            found = kmes_reader_next(&reader, room, sizeof(room), &view);
            if (found == KMES_READ_EVENT) result.add(Delivered::from(view));
        } else if (way == ReadWay::kPeek) {
            found = kmes_reader_peek(&reader, &view);
            const Delivered event = found == KMES_READ_EVENT ? Delivered::from(view) : Delivered{};
            if (found == KMES_READ_EVENT && kmes_reader_release(&reader)) result.add(event);
        } else {
            found = kmes_reader_bulk(&reader, room, sizeof(room), &bulk, nullptr);
            while (found == KMES_READ_EVENT && kmes_bulk_next(&reader, &bulk, &view))
                result.add(Delivered::from(view));
        }
        if (found != KMES_READ_EVENT) return found;
    }
}

Result read_image(const kmes_reader_config& config, ReadWay way) {
    Result result;
    kmes_reader reader{};
    int error = kmes_reader_open(&reader, &config);
    if (error == 0) error = read_all(reader, way, result);
    result.ends = error == 0 ? "empty" : "refused";
    kmes_reader_close(&reader);
    return result;
}

TEST(Vectors, AreThereWithEachOfTheirFiles) {
    EXPECT_GE(all_vectors().size(), 40u);
    for (const fs::path& path : all_vectors()) {
        EXPECT_TRUE(fs::exists(with_extension(path, ".hex"))) << path;
        EXPECT_TRUE(fs::exists(with_extension(path, ".bin"))) << path;
    }
}

TEST(Vectors, AreWhatTheirSourcesSay) {
    for (const fs::path& path : all_vectors())
        EXPECT_EQ(file_bytes(with_extension(path, ".bin")), assembled(with_extension(path, ".hex")))
            << path;
}

TEST(Vectors, SayWhatTheyAreForAndAreSmall) {
    for (const fs::path& path : all_vectors()) {
        const nlohmann::json vector = nlohmann::json::parse(std::ifstream(path));
        EXPECT_EQ(vector.at("schema").get<int>(), 1) << path;
        EXPECT_EQ(vector.at("name").get<std::string>(), path.stem().string());
        EXPECT_EQ(vector.value("form", "A"), kForms[KMES_LAYOUT - 1]) << path;
        for (const char* field : {"what", "why", "without", "clause"})
            EXPECT_FALSE(vector.at(field).get<std::string>().empty()) << path << field;
        EXPECT_LT(fs::file_size(with_extension(path, ".bin")), 100u << 10) << path;
    }
}

TEST(Vectors, GiveTheirRecordsInEveryWayOfReading) {
    for (const fs::path& path : all_vectors()) {
        const nlohmann::json vector = nlohmann::json::parse(std::ifstream(path));
        const std::vector<std::uint8_t> image = file_bytes(with_extension(path, ".bin"));
        const std::uint64_t capacity = vector.at("capacity");
        ASSERT_EQ(image.size(), KMES_METADATA_BYTES + capacity) << path;
        for (const ReadWay way : {ReadWay::kNext, ReadWay::kPeek, ReadWay::kBulk}) {
            for (const bool stop : {true, false}) {
                ImageBuffer buffer(image, capacity);
                buffer.config.stop_on_corrupt = stop;
                const Result result = read_image(buffer.config, way);
                EXPECT_EQ(result.records, vector.at("records").get<std::vector<std::string>>())
                    << path;
                const std::string ends = vector.at("ends");
                if (ends == "either") continue;
                EXPECT_EQ(result.ends, ends) << path;
            }
        }
    }
}

}  // namespace
}  // namespace kmes::tests
