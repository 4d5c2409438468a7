// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Places as bytes, and processes that continue from them: after a kill, a resize, a lap and another
// producer. This program is also the consumers that are killed (main, at the end).
#include "kmes/user/places.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/producer.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr unsigned kCpus = 2;
constexpr uint64_t k64KiB = 64 << 10;

using Places = std::vector<kmes_reader_place>;

std::string bytes_of_places(const Places& places) {
    std::string bytes(kmes_places_bytes(static_cast<unsigned>(places.size())), '\0');

    EXPECT_EQ(static_cast<int>(bytes.size()),
              kmes_places_write(places.data(), static_cast<unsigned>(places.size()), bytes.data(),
                                bytes.size()));
    return bytes;
}

int read_places(const std::string& bytes, Places* places) {
    return kmes_places_read(bytes.data(), bytes.size(), places->data(),
                            static_cast<unsigned>(places->size()));
}

Places places_of(const kmes_reader_set* set) {
    Places places;

    for (unsigned cpu = 0; cpu < kmes_reader_set_cpus(set); cpu++)
        places.push_back(kmes_reader_set_get_place(set, cpu));
    return places;
}

kmes_reader_set_options options_at(const Places& places) {
    kmes_reader_set_options options = {};

    options.place = places.data();
    options.places = static_cast<unsigned>(places.size());
    return options;
}

// The record of a consumer: events and the places after them, in one write.
struct Batch {
    uint32_t count;
    struct {
        uint32_t cpu;
        uint32_t sequence;
    } events[7];
    char places[32 + 24 * kCpus + 4];
};

std::vector<Batch> batches_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<Batch> batches(bytes.size() / sizeof(Batch));

    if (!batches.empty())
        memcpy(static_cast<void*>(batches.data()), bytes.data(), batches.size() * sizeof(Batch));
    return batches;
}

int add_event(void* context, const kmes_event_view* view) {
    auto* batch = static_cast<Batch*>(context);

    batch->events[batch->count].cpu = view->cpu_id;
    batch->events[batch->count++].sequence = static_cast<uint32_t>(view->sequence);
    return 0;
}

}  // namespace

// consume FILE: continues from the last batch of the file, and adds batches until it is killed.
int consume(const std::string& path) {
    const std::vector<Batch> before = batches_of(path);
    const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    kmes_reader_set_options options = {};
    Places places(kCpus);
    kmes_reader_set* set;

    if (!before.empty()) {
        const Batch& last = before.back();

        if (kmes_places_read(last.places, sizeof(last.places), places.data(), kCpus) != kCpus)
            return 1;
        options = options_at(places);
    }
    if (fd < 0 || kmes_reader_set_open(&set, &options) != 0) return 2;
    for (;;) {
        Batch batch = {};
        const int count = kmes_reader_set_consume(set, 1 + rand() % 7, add_event, &batch);

        if (count < 0) return 3;
        if (count == 0) {
            if (kmes_reader_set_wait(set, KMES_NO_TIMEOUT) < 0) return 4;
            continue;
        }
        places = places_of(set);
        if (kmes_places_write(places.data(), kCpus, batch.places, sizeof(batch.places)) < 0)
            return 5;
        if (write(fd, &batch, sizeof(batch)) != sizeof(batch)) return 6;
    }
}

int run_role(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "consume") return consume(argv[2]);
    return 125;
}

namespace {

// -- The bytes -----------------------------------------------------------------------------------

TEST(PlacesTest, BytesHoldEveryPlace) {
    const Places places = {{7, 1, true}, {0, 0, false}, {0, UINT64_MAX, true}, {~0ull, 5, true}};
    Places read(4);

    for (size_t count = 0; count <= places.size(); count++) {
        const Places some(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count));

        EXPECT_EQ(static_cast<int>(count), read_places(bytes_of_places(some), &read));
        for (size_t i = 0; i < count; i++) {
            EXPECT_EQ(places[i].session, read[i].session);
            EXPECT_EQ(places[i].last_sequence, read[i].last_sequence);
            EXPECT_EQ(places[i].is_known, read[i].is_known);
        }
    }
    read.resize(1);
    EXPECT_EQ(4, read_places(bytes_of_places(places), &read));
}

TEST(PlacesTest, AnyDamageIsOneError) {
    const std::string good = bytes_of_places({{7, 1, true}, {8, 2, true}});
    Places read(2);

    for (size_t bit = 0; bit < 8 * good.size(); bit++) {
        std::string bad = good;

        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_EQ(-EBADMSG, read_places(bad, &read)) << bit;
    }
    for (size_t length = 0; length < good.size(); length++)
        EXPECT_EQ(-EBADMSG, read_places(good.substr(0, length), &read)) << length;
    EXPECT_EQ(-EBADMSG, read_places(good + '\0', &read));
    EXPECT_EQ(-EBADMSG, read_places(std::string(1 << 20, 'x'), &read));
    EXPECT_FALSE(read[0].is_known);
}

uint32_t crc32_of(const std::string& bytes) {
    uint32_t sum = ~0u;

    for (const char byte : bytes) {
        sum ^= static_cast<uint8_t>(byte);
        for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xEDB88320u : 0);
    }
    return ~sum;
}

// Returns the bytes with `value` at `at`, and a matching checksum.
std::string changed(std::string bytes, size_t at, char value) {
    bytes[at] = value;
    const uint32_t sum = crc32_of(bytes.substr(0, bytes.size() - 4));

    memcpy(bytes.data() + bytes.size() - 4, &sum, 4);
    return bytes;
}

TEST(PlacesTest, ContentsWithARightChecksumAreCheckedToo) {
    const std::string good = bytes_of_places({{0, 9, true}, {8, 2, true}});
    Places read(2);

    EXPECT_EQ(0xCBF43926u, crc32_of("123456789"));
    EXPECT_EQ(good, changed(good, 8, 1));
    EXPECT_EQ(-EPROTONOSUPPORT, read_places(changed(good, 8, 2), &read));  // version
    EXPECT_EQ(-EBADMSG, read_places(changed(good, 12, 1), &read));         // count
    EXPECT_EQ(-EBADMSG, read_places(changed(good, 15, 1), &read));
    EXPECT_EQ(-EBADMSG, read_places(changed(good, 32 + 16, 2), &read));  // known
    EXPECT_EQ(-EBADMSG, read_places(changed(good, 32 + 20, 1), &read));
    EXPECT_EQ(2, read_places(changed(good, 16, static_cast<char>(good[16] ^ 1)), &read));
    EXPECT_NE(0u, read[0].session);  // the kernel has booted again
    EXPECT_EQ(8u, read[1].session);
}

// Zeros in the place of the kernel's boot would make a later place that of another boot.
TEST(PlacesTest, AProcessWithoutADescriptorGetsAnError) {
    struct kmes_reader_place place = {};
    unsigned char bytes[256];
    struct rlimit before;

    place.is_known = true;
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    const struct rlimit none = {0, before.rlim_max};

    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
    const int error = kmes_places_write(&place, 1, bytes, sizeof(bytes));
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
    EXPECT_EQ(-EMFILE, error);
    EXPECT_LT(0, kmes_places_write(&place, 1, bytes, sizeof(bytes)));
}

TEST(PlacesTest, BytesThatHaveNoRoomAreNotWritten) {
    const kmes_reader_place place = {7, 1, true};
    std::string bytes(kmes_places_bytes(1) - 1, 'x');

    EXPECT_EQ(-ENOSPC, kmes_places_write(&place, 1, bytes.data(), bytes.size()));
    EXPECT_EQ(std::string(bytes.size(), 'x'), bytes);
    EXPECT_EQ(-EINVAL, kmes_places_write(&place, KMES_PLACES_MAX + 1, bytes.data(), UINT64_MAX));
}

// -- Processes that continue ---------------------------------------------------------------------

class ResumeSetTest : public testing::Test {
  protected:
    void SetUp() override { setenv("KMES_SOCKET", address_.c_str(), 1); }
    void TearDown() override {
        kmes_reader_set_close(set_);
        unsetenv("KMES_SOCKET");
    }

    void start() {
        producer_.reset();
        producer_ = std::make_unique<Producer>(test_options(kCpus));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void emit(unsigned cpu, int count = 1) {
        for (int i = 0; i < count; i++) ASSERT_EQ(0, producer_->emit(cpu, "t"));
    }

    // Closes the set, and opens one that continues from the bytes.
    void reopen() {
        const std::string bytes = bytes_of_places(places_of(set_));

        kmes_reader_set_close(set_);
        set_ = nullptr;
        open(bytes);
    }
    void open(const std::string& bytes) {
        Places places(kCpus);

        ASSERT_EQ(static_cast<int>(kCpus), read_places(bytes, &places));
        options_.place = places.data();
        options_.places = kCpus;
        ASSERT_EQ(0, kmes_reader_set_open(&set_, &options_));
    }
    void open_new() { ASSERT_EQ(0, kmes_reader_set_open(&set_, &options_)); }

    static int on_event(void* context, const kmes_event_view* view) {
        auto* self = static_cast<ResumeSetTest*>(context);

        if (self->first_.emplace(view->cpu_id, view->sequence).second)
            self->lost_before_first_[view->cpu_id] = view->lost_before;
        return 0;
    }
    int consume(unsigned most = 0) {
        first_.clear();
        lost_before_first_.clear();
        return kmes_reader_set_consume(set_, most, on_event, this);
    }

    // A producer in a kernel: it has no sessions.
    static int attach_without_session(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<ResumeSetTest*>(context);
        const int error = self->real_.attach(self->real_.context, cpu, mapping);

        mapping->session = 0;
        return error;
    }
    static int identify_without_session(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<ResumeSetTest*>(context);
        const int error = self->real_.identify(self->real_.context, cpu, mapping);

        mapping->session = 0;
        return error;
    }
    static void detach(void* context, kmes_mapping* mapping) {
        auto* self = static_cast<ResumeSetTest*>(context);

        self->real_.detach(self->real_.context, mapping);
    }
    static void configure(void* context, kmes_reader_config* config, __u16 cpu) {
        kmes_reader_by_libkmes(config, cpu);
        static_cast<ResumeSetTest*>(context)->real_ = config->attach_functions;
        config->attach_functions = {attach_without_session, identify_without_session, detach,
                                    context};
        config->is_current = nullptr;
    }
    void be_without_sessions() {
        options_.configure = configure;
        options_.cpus = [](void*) { return kmes_cpus_by_libkmes(); };
        options_.context = this;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
    kmes_attach_functions real_ = {};
    kmes_reader_set_options options_ = {};
    kmes_reader_set* set_ = nullptr;
    std::map<unsigned, uint64_t> first_;
    std::map<unsigned, uint64_t> lost_before_first_;
};

TEST_F(ResumeSetTest, GoesOnWithoutADouble) {
    for (const bool is_kernel : {false, true}) {
        options_ = {};
        if (is_kernel) be_without_sessions();
        start();
        open_new();
        EXPECT_EQ(KMES_RESUMED_NO_PLACE, kmes_reader_set_resumed(set_, 0));
        EXPECT_EQ(KMES_RESUMED_NO_PLACE, kmes_reader_set_resumed(set_, kCpus));
        emit(0, 10);
        emit(1, 10);
        EXPECT_EQ(13, consume(13));
        emit(1);
        reopen();
        EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 0));
        EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 1));
        EXPECT_EQ(8, consume());
        EXPECT_EQ(0u, lost_before_first_[1]);
        kmes_reader_set_close(set_);
        set_ = nullptr;
    }
}

TEST_F(ResumeSetTest, GoesOnAfterResizes) {
    start();
    open_new();
    emit(0, 100);
    emit(1, 5);
    EXPECT_EQ(50, consume(50));
    const std::string bytes = bytes_of_places(places_of(set_));

    kmes_reader_set_close(set_);
    set_ = nullptr;
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(0, producer_->resize(k64KiB << (~i & 1)));
        emit(0, 10);
    }
    open(bytes);
    EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 0));
    EXPECT_EQ(85, consume());
    EXPECT_EQ(0u, lost_before_first_[0]);
}

TEST_F(ResumeSetTest, SaysExactlyWhatALapHasLost) {
    for (const bool is_kernel : {false, true}) {
        options_ = {};
        if (is_kernel) be_without_sessions();
        start();
        open_new();
        emit(0, 10);
        emit(1, 10);
        EXPECT_EQ(20, consume());
        emit(0, 10000);
        reopen();
        EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 0));
        const int count = consume();

        EXPECT_LT(0, count);
        EXPECT_EQ(10000u, lost_before_first_[0] + static_cast<uint64_t>(count));
        EXPECT_EQ(10u + lost_before_first_[0] + 1, first_[0]);
        EXPECT_EQ(lost_before_first_[0], kmes_reader_set_statistics(set_, 0).lost);
        kmes_reader_set_close(set_);
        set_ = nullptr;
    }
}

TEST_F(ResumeSetTest, SaysThatTheProducerIsAnother) {
    for (const bool is_kernel : {false, true}) {
        options_ = {};
        if (is_kernel) be_without_sessions();
        start();
        open_new();
        emit(0, 10);
        emit(1, 10);
        EXPECT_EQ(20, consume());
        const std::string bytes = bytes_of_places(places_of(set_));

        kmes_reader_set_close(set_);
        set_ = nullptr;
        start();
        emit(0, 3);
        open(bytes);
        EXPECT_EQ(KMES_RESUMED_NEW_SESSION, kmes_reader_set_resumed(set_, 0));
        EXPECT_EQ(KMES_RESUMED_NEW_SESSION, kmes_reader_set_resumed(set_, 1));
        emit(1, 2);
        EXPECT_EQ(5, consume());
        EXPECT_EQ(1u, first_[0]);
        EXPECT_EQ(1u, first_[1]);
        kmes_reader_set_close(set_);
        set_ = nullptr;
    }
}

TEST_F(ResumeSetTest, ConsumersThatAreKilledMissNothingAndRepeatNothing) {
    const std::string path = folder_.path("batches");
    const uint64_t most = 900;  // the ring holds all of them
    std::map<unsigned, std::vector<uint32_t>> read;
    uint64_t emitted = 0;

    start();
    for (int round = 0; round < 12; round++) {
        Child consumer({"consume", path}, address_);
        const size_t before = batches_of(path).size();

        for (uint64_t i = 0; i < most / 12; i++, emitted++) {
            emit(0);
            emit(1);
        }
        ASSERT_TRUE(comes_true(
            [&] { return batches_of(path).size() >= before + 1 + static_cast<size_t>(round); }));
        ASSERT_EQ(0, kill(consumer.pid(), SIGKILL));
        ASSERT_EQ(-1 - SIGKILL, consumer.finish());
    }
    Child last({"consume", path}, address_);

    ASSERT_TRUE(comes_true([&] {
        read.clear();
        for (const Batch& batch : batches_of(path))
            for (uint32_t i = 0; i < batch.count; i++)
                read[batch.events[i].cpu].push_back(batch.events[i].sequence);
        return read[0].size() >= emitted && read[1].size() >= emitted;
    }));
    ASSERT_EQ(0, kill(last.pid(), SIGKILL));
    for (unsigned cpu = 0; cpu < kCpus; cpu++) {
        ASSERT_EQ(emitted, read[cpu].size());
        for (uint32_t i = 0; i < emitted; i++) ASSERT_EQ(i + 1, read[cpu][i]);
    }
}

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (std::string(argv[0]) == "kmes_child") return kmes::run_role(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
