// SPDX-License-Identifier: MIT
//
// Recorded events (--stream): the CPUs, types, sizes, payloads, order and number of events come
// from a file of kmesctl record. The oracle judges as in every other case.
#include "conformance/cases/play.h"
#include "conformance/play/stream_play.h"

namespace kmes::conformance {

using enum Level;
using enum Demand;

const std::vector<Case> kStreamCases = {
    {"stream/every-event", must, "recorded events, none of them overwritten",
     "Emit the events of the file of --stream. Wait for the consumer before an unread one would be "
     "overwritten.",
     kOwnBytes, StreamPlay{Pace::every_event}, stream, "5.1.8"},
    {"stream/as-fast-as-possible", must, "recorded events without a pause",
     "Emit the events of the file of --stream without waiting for the consumer.",
     "The consumer delivers what is not overwritten once, in order, with exact counts of the lost "
     "events.",
     StreamPlay{Pace::unpaced}, stream, "5.1.9"},
    {"stream/with-a-resize", must, "recorded events with a resize in the middle",
     "Emit the events of the file of --stream. Double the capacity of every buffer in the middle.",
     "The consumer neither loses an event in the change of buffers nor delivers one twice.",
     StreamPlay{Pace::every_event, true}, stream, "5.1.8.4"},
    {"stream/between-sleeps", must, "recorded events for a sleeping consumer",
     "Emit the events of the file of --stream, a few at a time. Wait until the consumer sleeps "
     "before the next ones.",
     kDelivers, StreamPlay{Pace::sleeps}, stream, "5.1.8.2"},
};

}  // namespace kmes::conformance
