// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/concurrent.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>

#include "kmes/abi.h"

namespace kmes::identity {
namespace {

using props::Random;

constexpr unsigned kCpus = 2;
constexpr unsigned kEvents = 2000;  // of each CPU
constexpr unsigned kResizes = 8;    // of each CPU
constexpr std::uint64_t kSmallest = 8192;
constexpr std::string_view kType = "kmes.test";
// The payload of an event of exactly 50 % of the smallest buffer, in each form of the layout.
constexpr std::uint64_t kMostPayload = kSmallest / 2 - sizeof(kmes_event_header) - kType.size();

// The stream of one CPU, and the places of its resizes.
struct Stream {
    unsigned cpu = 0;
    std::uint64_t seed = 0;
    std::vector<std::uint64_t> capacities;  // of the buffers
    std::vector<std::uint64_t> last;        // the last sequence number of each buffer
    std::atomic<unsigned> emitted{0};
    std::exception_ptr error;
};

// Returns a payload with which no event exceeds 50 % of any buffer. Otherwise timing would decide
// whether the producer drops it.
std::string payload_of(const Stream& stream, unsigned event) {
    Random random(stream.seed + event);
    const std::uint64_t most = random.chance(10) ? kMostPayload : 200;
    return props::payload_bytes(stream.seed + event, random.below(most + 1));
}

bool is_in_batch(unsigned event) {
    return event / 8 % 3 == 0;
}

void operate(Side& side, unsigned cpu, std::uint32_t verb) {
    kmes_test_operation operation{};
    operation.verb = verb;
    operation.cpu = cpu;
    side.operate(operation);
}

void emit(Side& side, const Stream& stream, unsigned event) {
    if (is_in_batch(event) && event % 8 == 0) operate(side, stream.cpu, KMES_TEST_BATCH);
    const std::string payload = payload_of(stream, event);
    kmes_test_operation operation{};
    operation.verb = is_in_batch(event) ? KMES_TEST_ADD : KMES_TEST_EMIT;
    operation.cpu = stream.cpu;
    operation.type_address = address_of(kType.data());
    operation.type_len = kType.size();
    operation.payload_address = payload.empty() ? 0 : address_of(payload.data());
    operation.payload_len = payload.size();
    side.operate(operation);
    if (is_in_batch(event) && event % 8 == 7) operate(side, stream.cpu, KMES_TEST_END);
}

std::int64_t piece(Side& side, const Stream& stream, std::uint32_t verb, std::uint64_t capacity) {
    kmes_test_operation operation{};
    operation.verb = verb;
    operation.cpu = stream.cpu;
    operation.capacity = capacity;
    return side.operate(operation);
}

// Resizes at equal intervals of the stream, counted in events.
void resize(Module& module, Stream& stream) {
    for (unsigned i = 1; i < stream.capacities.size(); i++) {
        while (stream.emitted.load() < i * kEvents / (kResizes + 2)) std::this_thread::yield();
        if (stream.emitted.load() > kEvents) return;  // the other thread has failed
        piece(module, stream, KMES_TEST_PREPARE, stream.capacities[i]);
        for (int pieces = 0; pieces < 20; pieces++) {
            if (piece(module, stream, KMES_TEST_COPY, 0) == 0) break;
            std::this_thread::yield();
        }
        piece(module, stream, KMES_TEST_CHANGE, 0);
        module.take_new_buffer(stream.cpu);
    }
}

void play_threads(Module& module, Stream* streams) {
    std::vector<std::thread> threads;
    for (unsigned cpu = 0; cpu < kCpus; cpu++) {
        Stream& stream = streams[cpu];
        threads.emplace_back([&module, &stream] {
            try {
                for (unsigned event = 0; event < kEvents; event++) {
                    emit(module, stream, event);
                    stream.emitted++;
                }
            } catch (...) {
                stream.error = std::current_exception();
                stream.emitted = kEvents + 1;
            }
        });
        threads.emplace_back([&module, &stream] { resize(module, stream); });
    }
    for (std::thread& thread : threads) thread.join();
    for (unsigned cpu = 0; cpu < kCpus; cpu++)
        if (streams[cpu].error) std::rethrow_exception(streams[cpu].error);
}

std::span<const std::uint8_t> content_of(std::span<const std::uint8_t> mapping) {
    kmes_metadata_v1 page;
    std::memcpy(&page, mapping.data(), sizeof(page));
    return mapping.subspan(KMES_METADATA_BYTES + (page.tail_pos & (page.capacity - 1)),
                           page.write_pos - page.tail_pos);
}

std::uint64_t last_sequence(std::span<const std::uint8_t> content, std::uint64_t before) {
    while (!content.empty()) {
        kmes_event_header header;
        if (content.size() < sizeof(header)) return 0;
        std::memcpy(&header, content.data(), sizeof(header));
        if (header.event_size < sizeof(header) || header.event_size > content.size()) return 0;
        before = header.sequence;
        content = content.subspan(header.event_size);
    }
    return before;
}

void play_again(Userspace& userspace, const Stream& stream) {
    std::size_t buffer = 0;
    for (unsigned event = 0; event <= kEvents; event++) {
        while (buffer < stream.last.size() && stream.last[buffer] == event) {
            piece(userspace, stream, KMES_TEST_SWAP, stream.capacities[++buffer]);
            userspace.take_new_buffer(stream.cpu);
        }
        if (event < kEvents) emit(userspace, stream, event);
    }
}

std::optional<std::string> compare(Module& module, Userspace& userspace, const Stream& stream) {
    const std::string where = "CPU " + std::to_string(stream.cpu);
    const kmes_test_state ours = userspace.state(stream.cpu);
    const kmes_test_state theirs = module.state(stream.cpu);
    const kmes_ioctl_statistics& mine = ours.statistics;
    const kmes_ioctl_statistics& other = theirs.statistics;
    if (mine.events != other.events || mine.bytes != other.bytes ||
        mine.overwritten != other.overwritten || mine.swaps != other.swaps ||
        mine.left_behind != other.left_behind || mine.dropped != other.dropped ||
        ours.sequence != theirs.sequence || ours.tail != theirs.tail ||
        ours.published != theirs.published || ours.frontier != theirs.frontier)
        return where + ": statistics or positions differ at the end";
    for (std::size_t buffer = 0; buffer < stream.capacities.size(); buffer++) {
        const auto a = userspace.mapping(stream.cpu, buffer);
        const auto b = module.mapping(stream.cpu, buffer);
        const std::string text = where + ", buffer " + std::to_string(buffer);
        if (std::memcmp(a.data(), b.data(), KMES_METADATA_BYTES))
            return text + ": metadata differs";
        const auto mine_content = content_of(a), other_content = content_of(b);
        if (mine_content.size() != other_content.size() ||
            std::memcmp(mine_content.data(), other_content.data(), mine_content.size()))
            return text + ": bytes between tail_pos and write_pos differ";
    }
    return std::nullopt;
}

}  // namespace

Played play_concurrently(std::uint64_t seed) {
    InstanceOptions options;
    options.capacity = kSmallest;
    options.clock_step_ns = 0;  // the timestamp must not depend on the time of the emission
    options.cpus = kCpus;
    Module module(options);
    Userspace userspace(options);
    Stream streams[kCpus];
    Random random(seed);
    for (unsigned cpu = 0; cpu < kCpus; cpu++) {
        streams[cpu].cpu = cpu;
        streams[cpu].seed = random.next();
        streams[cpu].capacities = {options.capacity};
        for (unsigned i = 0; i < kResizes; i++)
            streams[cpu].capacities.push_back(kSmallest << random.below(6));
    }
    play_threads(module, streams);
    Played played;
    for (Stream& stream : streams) {
        std::uint64_t last = 0;
        for (std::size_t buffer = 0; buffer + 1 < stream.capacities.size(); buffer++) {
            last = last_sequence(content_of(module.mapping(stream.cpu, buffer)), last);
            stream.last.push_back(last);
        }
        play_again(userspace, stream);
        if (!played.difference) played.difference = compare(module, userspace, stream);
        played.buffers += stream.capacities.size();
        for (std::size_t buffer = 0; buffer < stream.capacities.size(); buffer++)
            played.bytes += content_of(module.mapping(stream.cpu, buffer)).size();
        played.operations += kEvents + kResizes;
    }
    played.table = userspace.table();
    return played;
}

}  // namespace kmes::identity
