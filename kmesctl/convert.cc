// SPDX-License-Identifier: MIT
// kmesctl convert: writes a record file in a format of other programs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "kmesctl/command.h"
#include "kmesctl/convert_form.h"
#include "kmesctl/record_files.h"
#include "record/reader.h"

namespace kmes::kmesctl {

void ConvertForm::check(bool done) {
    if (!done)
        throw Failure(kExitFailed,
                      fmt::format("cannot write the output: {}", std::strerror(errno)));
}

namespace {

using record::Block;
using record::Reader;
using record::ReadResult;

struct ConvertOptions {
    std::string to;
    std::string file;
    std::string output;
    bool skips_damage = false;
};

// Standard output goes to a new file, which is as private as the recording.
void open_output(const std::string& path) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        throw Failure(kExitFailed, fmt::format("cannot create {}: {}", path, std::strerror(errno)));
    close(fd);
}

std::unique_ptr<ConvertForm> make_form(const ConvertOptions& options) {
    if (options.to == "ctf") {
        if (options.output.empty())
            throw Failure(kExitUsage, "--to ctf makes a folder; -o FOLDER is right beside it");
        return make_ctf_form(options.output);
    }
    if (options.to != "json" && options.to != "csv" && options.to != "perfetto")
        throw Failure(kExitUsage, fmt::format("--to is \"{}\"; ctf, csv, json or perfetto is right",
                                              options.to));
    if (!options.output.empty()) open_output(options.output);
    if (options.to == "perfetto") return make_perfetto_form(stdout);
    return options.to == "json" ? make_json_form(stdout) : make_csv_form(stdout);
}

// Returns how many whole blocks follow the damage. The reader is then at its end.
std::uint64_t count_after(Reader* reader) {
    std::uint64_t count = 0;
    Block block;
    while (reader->skip_damage()) {
        while (reader->next(&block) == ReadResult::kBlock) ++count;
    }
    return count;
}

int convert(const ConvertOptions& options) {
    std::string wrong;
    Reader reader;
    open_record(options.file, &reader);
    const auto form = make_form(options);
    bool is_damaged = false;
    while (true) {
        Block block;
        const ReadResult result = reader.next(&block);
        if (result == ReadResult::kEnd) break;
        if (result == ReadResult::kDamage) {
            is_damaged = true;
            wrong = reader.damage().what;
            if (!options.skips_damage) break;
            say(fmt::format("{} is {}", options.file, wrong));
            if (!reader.skip_damage()) break;
            continue;
        }
        record::ItemCursor items(block.body);
        record::Item item;
        while (items.next(&item)) form->add(item);
        form->end_block();
    }
    form->finish();
    if (is_damaged && !options.skips_damage)
        throw Failure(kExitFailed,
                      fmt::format("{} is {}; everything before it is converted, {} whole blocks "
                                  "after it are not (--skip-damage converts them)",
                                  options.file, wrong, count_after(&reader)));
    return is_damaged ? kExitFailed : kExitDone;
}

}  // namespace

Runner declare_convert(CLI::App& app) {
    auto options = std::make_shared<ConvertOptions>();
    app.add_option("--to", options->to,
                   "ctf: a trace for babeltrace2; csv; json: an object a line; perfetto: a trace "
                   "for ui.perfetto.dev")
        ->type_name("FORM")
        ->required();
    app.add_option("-o,--output", options->output,
                   "the file, or the folder of a trace; it must not exist (default for all "
                   "but ctf: standard output)")
        ->type_name("PATH");
    app.add_flag("--skip-damage", options->skips_damage,
                 "convert also the whole blocks after damage");
    app.add_option("file", options->file, "a file of kmesctl record")
        ->type_name("FILE")
        ->required();
    return [options] { return convert(*options); };
}

}  // namespace kmes::kmesctl
