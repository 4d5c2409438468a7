// SPDX-License-Identifier: MIT
//
// See source.h.
#include "kmesctl/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "kmes/abi.h"
#include "kmes/user/futex.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"
#include "kmesctl/command.h"

namespace kmes::kmesctl {

namespace {

// While the producer changes, the reads of a CPU may fail for a short time.
constexpr std::uint64_t kFailingNs = kNsPerSecond / 5;
// The interval between counts of the CPUs of a new producer, until they are read.
constexpr std::uint64_t kCountCpusEveryNs = kNsPerSecond / 10;

}  // namespace

// A layer between a reader and its attach functions. It forwards each call.
struct Source::Hook {
    Source* source = nullptr;
    struct kmes_attach_functions inner = {};
    int (*inner_is_current)(void* context, __u16 cpu, struct kmes_mapping* mapping) = nullptr;
    struct kmes_mapping mapping = {};  // the newest; base is NULL if there is none
    std::uint64_t attaches = 0;
};

std::string explain_attach(int error) {
    const char* named = getenv(KMES_SOCKET_ENVIRONMENT);
    const bool has_name = named != nullptr && *named != '\0';
    switch (-error) {
        case ENOSYS:
            return fmt::format("no producer serves at {}; start kmesctl serve{}",
                               has_name ? named : KMES_SOCKET_DEFAULT_ADDRESS,
                               has_name ? "" : ", or load kmes.ko");
        case EPERM:
        case EACCES:
            return "attach is not permitted; it needs CAP_AUDIT_READ, or access to the socket";
        case EAGAIN:
            return "the producer is in its boot phase and has no rings yet; try again later";
        case EMFILE:
            return "too many open files; each CPU needs descriptors while it attaches "
                   "(ulimit -n)";
        case EINVAL:
            return fmt::format(
                "the producer's buffers are of another form of the layout than form {}, which this "
                "kmesctl reads, or their capacity does not fit their length",
                static_cast<char>('A' + KMES_LAYOUT - KMES_LAYOUT_A));
        default:
            return fmt::format("cannot attach: {}", strerror(-error));
    }
}

Source::Source(std::function<void(const std::string&)> on_notice, Watermark watermark,
               bool is_read_only)
    : on_notice_(std::move(on_notice)), is_read_only_(is_read_only), watermark_(watermark) {
    const struct kmes_reader_set_options options = set_options();
    if (const int error = kmes_reader_set_open(&set_, &options); error != 0)
        throw Failure(kExitFailed, explain_attach(error));
    cpus_.resize(cpus());
    existing_cpus_ = cpus();
    check_cpus();
}

struct kmes_reader_set_options Source::set_options() {
    struct kmes_reader_set_options options = {};
    options.watermark_bytes = watermark_.bytes;
    options.watermark_ns = watermark_.ns;
    options.configure = configure;
    options.cpus = [](void*) { return kmes_cpus_by_libkmes(); };
    options.context = this;
    return options;
}

// Returns whether the latest producer has more CPUs than the set, and no event of an earlier
// producer is unread.
bool Source::must_follow_cpus() {
    const std::uint64_t now_ns = kmes_clock_monotonic_ns();
    if (!is_cpu_count_due_ || now_ns - cpus_asked_ns_ < kCountCpusEveryNs) return false;
    cpus_asked_ns_ = now_ns;
    const int count = kmes_cpus_by_libkmes();
    if (count <= 0) return false;
    if (static_cast<unsigned>(count) != existing_cpus_)
        on_notice_(fmt::format("the producer has {} now, and had {}",
                               counted(static_cast<unsigned>(count), "CPU"), existing_cpus_));
    existing_cpus_ = static_cast<unsigned>(count);
    is_cpu_count_due_ = existing_cpus_ > cpus();
    return is_cpu_count_due_ && is_read_from_latest(set_, cpus());
}

bool Source::is_read_from_latest(const struct kmes_reader_set* set, unsigned cpus) const {
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
        if (kmes_reader_set_get_place(set, cpu).session != session_) return false;
    }
    return true;
}

// While a producer starts or ends, an attach may fail for a short time.
void Source::note_unread_cpus(int error) {
    constexpr unsigned kTriesBeforeNews = 3;
    if (++follow_tries_ != kTriesBeforeNews) return;
    on_notice_(fmt::format("the CPUs from {} to {} are not read: {}", cpus(), existing_cpus_ - 1,
                           explain_attach(error)));
}

bool Source::follow_cpus(const std::function<std::vector<kmes_reader_place>()>& places,
                         const std::function<void()>& before_close) {
    if (!must_follow_cpus()) return false;
    const std::uint64_t session = session_;
    std::vector<kmes_reader_place> from = places ? places() : std::vector<kmes_reader_place>();
    for (unsigned cpu = static_cast<unsigned>(from.size()); cpu < cpus(); ++cpu)
        from.push_back(kmes_reader_set_get_place(set_, cpu));
    from.resize(std::max(existing_cpus_, cpus()));
    // A CPU without an event of this producer begins at event 1.
    for (kmes_reader_place& place : from) {
        if (!place.is_known || place.session != session) place = {session, 0, true};
    }
    struct kmes_reader_set_options options = set_options();
    options.place = from.data();
    options.places = static_cast<unsigned>(from.size());
    struct kmes_reader_set* next = nullptr;
    auto earlier_hooks = std::exchange(hooks_, {});
    int error = kmes_reader_set_open(&next, &options);
    for (unsigned cpu = 0; cpu < cpus() && error == 0; ++cpu)
        error = kmes_reader_set_error(next, cpu);
    // If a third producer has started meanwhile, the places are not those of its rings.
    if (error != 0 || kmes_reader_set_cpus(next) <= cpus() || session_ != session ||
        !is_read_from_latest(next, cpus())) {
        kmes_reader_set_close(next);
        hooks_ = std::move(earlier_hooks);
        if (error != 0) note_unread_cpus(error);
        return false;
    }
    if (before_close) before_close();
    earlier_corrupt_ = corrupt();
    kmes_reader_set_close(std::exchange(set_, next));
    cpus_.resize(cpus());
    existing_cpus_ = cpus();
    is_cpu_count_due_ = false;
    return true;
}

Source::~Source() {
    kmes_reader_set_close(set_);
}

void Source::wait(std::uint64_t timeout_ns) {
    check_cpus();
    kmes_reader_set_wait(set_, timeout_ns);
}

void Source::check_cpus() {
    const std::uint64_t now_ns = kmes_clock_monotonic_ns();
    bool is_any_read = false;
    for (unsigned cpu = 0; cpu < cpus(); ++cpu) {
        // The end of the producer is reported separately.
        if (error(cpu) == -ENOSYS) continue;
        if (error(cpu) != 0) {
            if (cpus_[cpu].failing_since_ns == 0) cpus_[cpu].failing_since_ns = now_ns;
            continue;
        }
        is_any_read = true;
        if (cpus_[cpu].is_reported) on_notice_(fmt::format("CPU {} can be read again", cpu));
        cpus_[cpu] = {.was_read = true};
    }
    // The CPUs after these do not exist any more.
    for (unsigned cpu = existing_cpus_; cpu < cpus(); ++cpu) cpus_[cpu].failing_since_ns = 0;
    // If none can be read, the producer has ended, which is reported separately.
    for (unsigned cpu = 0; is_any_read && cpu < cpus(); ++cpu) {
        Cpu& known = cpus_[cpu];
        if (known.failing_since_ns == 0 || known.is_reported ||
            now_ns - known.failing_since_ns < kFailingNs)
            continue;
        known.is_reported = true;
        on_notice_(fmt::format("CPU {} cannot be read: {}", cpu, explain_attach(error(cpu))));
    }
}

unsigned Source::unread_cpus() const {
    unsigned count = existing_cpus_ > cpus() ? existing_cpus_ - cpus() : 0;
    for (unsigned cpu = 0; cpu < std::min(cpus(), existing_cpus_); ++cpu)
        count += !cpus_[cpu].was_read && error(cpu) != 0 ? 1 : 0;
    return count;
}

void cannot_read(int error) {
    throw Failure(kExitFailed, fmt::format("cannot read events: {}", strerror(-error)));
}

unsigned Source::consume(unsigned most, const Take& take) {
    // The reader set is C: no exception may pass through it.
    struct Call {
        const Take& take;
        std::exception_ptr thrown;
    } call = {take, nullptr};
    const auto on_event = [](void* context, const struct kmes_event_view* event) {
        auto* current = static_cast<Call*>(context);
        try {
            return current->take(*event) ? 0 : 1;
        } catch (...) {
            current->thrown = std::current_exception();
            return 1;
        }
    };
    const int count = kmes_reader_set_consume(set_, most, on_event, &call);
    if (call.thrown) std::rethrow_exception(call.thrown);
    if (count < 0) cannot_read(count);
    return static_cast<unsigned>(count);
}

Backlog Source::read_backlog(const Take& take, const std::function<bool()>& is_over) {
    // By CPU: the unread bytes of the ring's content at the beginning.
    std::vector<std::uint64_t> left(cpus());
    for (unsigned cpu = 0; cpu < cpus(); ++cpu) {
        const Ring held = ring(cpu);
        if (held.is_attached)
            left[cpu] = std::min(held.write_pos - held.tail_pos, held.capacity_bytes);
    }
    const auto count = [&](const struct kmes_event_view& event) {
        std::uint64_t& bytes = left.at(event.cpu_id);
        bytes -= std::min<std::uint64_t>(bytes, event.event_size);
        return take(event);
    };
    while (consume(kEventsAtATime, count) != 0) {
        if (is_over()) return Backlog::stopped;
        if (std::ranges::all_of(left, [](std::uint64_t bytes) { return bytes == 0; }))
            return Backlog::exceeded;
    }
    return Backlog::read;
}

std::uint64_t Source::corrupt() const {
    std::uint64_t sum = earlier_corrupt_;
    for (unsigned cpu = 0; cpu < cpus(); ++cpu)
        sum += kmes_reader_set_statistics(set_, cpu).corrupt;
    return sum;
}

int Source::ready_fd() {
    const int fd = kmes_reader_set_fd(set_);
    if (fd < 0)
        throw Failure(kExitFailed, fmt::format("cannot wait for events: {}", strerror(-fd)));
    return fd;
}

void Source::check_producer() {
    // Readers check for the producer after 50 ms of sleep (kmes_reader_wait).
    constexpr std::uint64_t kUntilReadersAskNs = 60'000'000;
    struct kmes_mapping mapping = {};
    if (hooks_.empty() || session_ == 0) return;
    const int error = hooks_[0]->inner.identify(hooks_[0]->inner.context, 0, &mapping);
    if (error == 0 && mapping.session == session_) return;
    note(error);
    wait(kUntilReadersAskNs);
}

Source::Ring Source::ring(unsigned cpu) const {
    Ring ring;
    struct kmes_fields fields = {};
    if (cpu >= hooks_.size() || hooks_[cpu]->mapping.base == nullptr) return ring;
    if (!kmes_bind_fields(&fields, hooks_[cpu]->mapping.base, KMES_VERSION_1)) return ring;
    ring.is_attached = true;
    ring.capacity_bytes = (hooks_[cpu]->mapping.mapped_bytes - KMES_METADATA_BYTES) / 2;
    // The values are only displayed, so they need no memory order.
    ring.tail_pos = __atomic_load_n(fields.tail_pos, __ATOMIC_RELAXED);
    ring.write_pos = __atomic_load_n(fields.write_pos, __ATOMIC_RELAXED);
    ring.futex_counter = __atomic_load_n(fields.futex_counter, __ATOMIC_RELAXED);
    return ring;
}

std::uint64_t Source::attaches(unsigned cpu) const {
    return cpu < hooks_.size() ? hooks_[cpu]->attaches : 0;
}

void Source::configure(void* context, struct kmes_reader_config* config, __u16 cpu) {
    auto* source = static_cast<Source*>(context);
    kmes_reader_by_libkmes(config, cpu);
    if (source->is_read_only_) kmes_reader_make_read_only(config);
    while (source->hooks_.size() <= cpu) {
        source->hooks_.push_back(std::make_unique<Hook>());
        source->hooks_.back()->source = source;
    }
    Hook* hook = source->hooks_[cpu].get();
    hook->inner = config->attach_functions;
    hook->inner_is_current = config->is_current;
    config->attach_functions = {attach, identify, detach, hook};
    if (config->is_current != nullptr) config->is_current = is_current;
}

int Source::attach(void* context, __u16 cpu, struct kmes_mapping* mapping) {
    auto* hook = static_cast<Hook*>(context);
    const int error = hook->inner.attach(hook->inner.context, cpu, mapping);
    if (error == 0) {
        hook->mapping = *mapping;
        ++hook->attaches;
        hook->source->note_session(mapping->session);
    } else {
        hook->source->note(error);
    }
    return error;
}

int Source::identify(void* context, __u16 cpu, struct kmes_mapping* mapping) {
    auto* hook = static_cast<Hook*>(context);
    const int error = hook->inner.identify(hook->inner.context, cpu, mapping);
    hook->source->note(error);
    return error;
}

void Source::detach(void* context, struct kmes_mapping* mapping) {
    auto* hook = static_cast<Hook*>(context);
    if (mapping->base == hook->mapping.base) hook->mapping.base = nullptr;
    hook->inner.detach(hook->inner.context, mapping);
}

int Source::is_current(void* context, __u16 cpu, struct kmes_mapping* mapping) {
    auto* hook = static_cast<Hook*>(context);
    const int answer = hook->inner_is_current(hook->inner.context, cpu, mapping);
    if (answer < 0) hook->source->note(answer);
    return answer;
}

void Source::note(int error) {
    if ((error != -ENOSYS && error != -ESHUTDOWN) || has_ended_ || session_ == 0) return;
    has_ended_ = true;
    on_notice_("the producer has ended; waiting for the next one");
}

void Source::note_session(std::uint64_t session) {
    if (session == session_) return;
    const bool is_first = session_ == 0;
    session_ = session;
    if (is_first) return;
    is_cpu_count_due_ = true;
    follow_tries_ = 0;
    cpus_asked_ns_ = 0;
    on_notice_(fmt::format("{}another producer serves now (session {:016x})",
                           has_ended_ ? "" : "the producer has ended, and ", session));
    has_ended_ = false;
}

}  // namespace kmes::kmesctl
