// SPDX-License-Identifier: MIT
// kmesctl convert: writes a record file in a format of other programs.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>

#include "kmesctl/command.h"
#include "kmesctl/convert_form.h"
#include "kmesctl/new_output.h"
#include "kmesctl/output.h"
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

// A signal has requested the end.
struct Stopped {};

void check_stop() {
    if (stop_signal() != 0) throw Stopped();
}

void check_form(const ConvertOptions& options) {
    const std::string& to = options.to;
    if (to == "ctf" && options.output.empty())
        throw Failure(kExitUsage, "--to ctf makes a folder, and needs -o FOLDER");
    if (to != "ctf" && to != "json" && to != "csv" && to != "perfetto")
        throw Failure(kExitUsage,
                      fmt::format("--to is \"{}\"; expected ctf, csv, json or perfetto", to));
}

// `output`: nullptr for standard output. Standard output becomes the file of a new output.
std::unique_ptr<ConvertForm> make_form(const std::string& to, const NewOutput* output) {
    if (to == "ctf") return make_ctf_form(output->temporary_path());
    if (output != nullptr && dup2(output->fd(), STDOUT_FILENO) < 0)
        throw Failure(kExitFailed, fmt::format("cannot write: {}", std::strerror(errno)));
    if (to == "perfetto") return make_perfetto_form(stdout);
    return to == "json" ? make_json_form(stdout) : make_csv_form(stdout);
}

// Returns the number of whole blocks after the damage. Reads the file to its end.
std::uint64_t count_after(Reader* reader) {
    std::uint64_t count = 0;
    Block block;
    while (reader->skip_damage()) {
        while (reader->next(&block) == ReadResult::kBlock) {
            check_stop();
            ++count;
        }
    }
    return count;
}

// The items that a conversion has read.
struct Damage {
    bool is_damaged = false;
    bool is_end_damaged = false;       // no whole block follows the damage
    std::uint64_t missing_blocks = 0;  // between whole blocks
};

void convert_block(const Block& block, ConvertForm* form) {
    record::ItemCursor items(block.body);
    record::Item item;
    while (items.next(&item)) {
        check_stop();
        form->add(item);
    }
    form->end_block();
}

// Ends at the first damage, unless the caller wants to skip it.
Damage convert_blocks(const ConvertOptions& options, Reader* reader, ConvertForm* form) {
    Damage damage;
    std::uint64_t next_index = 0;
    while (true) {
        Block block;
        const ReadResult result = reader->next(&block);
        if (result == ReadResult::kEnd) break;
        if (result == ReadResult::kBlock) {
            damage.missing_blocks += block.index - next_index;
            next_index = block.index + 1;
            convert_block(block, form);
            continue;
        }
        damage.is_damaged = true;
        if (!options.skips_damage) break;
        say(fmt::format("{} is {}", options.file, reader->damage().what));
        damage.is_end_damaged = !reader->skip_damage();
        if (damage.is_end_damaged) break;
    }
    form->finish();
    return damage;
}

// Makes a whole output or none. With a part of it, the next conversion would fail because the
// output exists.
Damage convert_to_new(const ConvertOptions& options, Reader* reader) {
    keep_signals({SIGTERM, SIGINT, SIGHUP});
    NewOutput output(options.output,
                     options.to == "ctf" ? NewOutput::Kind::folder : NewOutput::Kind::file);
    try {
        const auto form = make_form(options.to, &output);
        const Damage damage = convert_blocks(options, reader, form.get());
        check_stop();
        output.commit();
        return damage;
    } catch (const std::exception& error) {
        check_stop();  // it may have interrupted a write
        throw Failure(kExitFailed, fmt::format("{}: {}; the incomplete output was removed",
                                               options.output, reason_of(error)));
    }
}

// Returns the line about damage that was not skipped.
std::string text_of_damage(const ConvertOptions& options, Reader* reader) {
    const std::string what = reader->damage().what;
    const std::uint64_t after = count_after(reader);
    return fmt::format("{} is {}; everything before it is converted, {}", options.file, what,
                       after == 0
                           ? "and no whole block follows"
                           : fmt::format("and {} after it {} not (--skip-damage)",
                                         counted(after, "whole block"), after == 1 ? "is" : "are"));
}

void say_what_is_missing(const std::string& file, const Damage& damage) {
    if (damage.missing_blocks != 0)
        say(fmt::format("{}: the output lacks the events of {}", file,
                        counted(damage.missing_blocks, "damaged block")));
    if (damage.is_end_damaged)
        say(fmt::format("{}: the output lacks what follows the last whole block", file));
}

int convert_record(const ConvertOptions& options) {
    check_form(options);
    Reader reader;
    open_record(options.file, &reader);
    const Damage damage =
        options.output.empty()
            ? convert_blocks(options, &reader, make_form(options.to, nullptr).get())
            : convert_to_new(options, &reader);
    if (!damage.is_damaged) return kExitDone;
    if (!options.skips_damage) throw Failure(kExitFailed, text_of_damage(options, &reader));
    say_what_is_missing(options.file, damage);
    return kExitFailed;
}

int convert(const ConvertOptions& options) {
    try {
        return convert_record(options);
    } catch (const Stopped&) {  // everything unfinished is removed now
        end_by_stop_signal();
        return kExitFailed;
    }
}

}  // namespace

Runner declare_convert(CLI::App& app) {
    auto options = std::make_shared<ConvertOptions>();
    app.add_option("--to", options->to,
                   "ctf: a trace for babeltrace2; csv; json: an object per line; perfetto: a trace "
                   "for ui.perfetto.dev")
        ->type_name("FORM")
        ->required();
    app.add_option("-o,--output", options->output,
                   "the file, or the folder of a trace; it must not exist (default for all "
                   "but ctf, and -: standard output)")
        ->type_name("PATH")
        ->check(wrong_path);
    app.add_flag("--skip-damage", options->skips_damage,
                 "convert also the whole blocks after damage");
    app.add_option("file", options->file, "a file of kmesctl record")
        ->type_name("FILE")
        ->required();
    return [options] {
        if (options->output == "-") options->output.clear();
        return convert(*options);
    };
}

}  // namespace kmes::kmesctl
