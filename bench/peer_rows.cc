// SPDX-License-Identifier: MIT
//
// Compares an emission with those of other rings and queues of Linux. Each peer is a shared object
// (peers/peer.h). The first row is KMES.
#include <dlfcn.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/peer.h"
#include "bench/rows.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

PeerInfo load(const std::string& path) {
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // until the end of the process
    auto* get =
        object ? reinterpret_cast<PeerInfo (*)()>(dlsym(object, "kmes_bench_peer")) : nullptr;

    if (!get) throw std::runtime_error("--peer " + path + ": not a peer of bench/peers");
    return get();
}

class Ours : public Peer {
  public:
    Ours(std::uint64_t payload_bytes, Barrier barrier) : payload_(payload_bytes) {
        ProducerOptions options;

        options.capacity_bytes = kCapacityBytes;
        options.emitters = EmitterMode::kSingle;
        options.barrier = barrier;
        producer_ = std::make_unique<Producer>(options);
        must(producer_->start_without_registry() == 0, "start");
    }

    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++)
            must(producer_->emit(0, kType, payload_) == 0, "emit");
    }

  private:
    std::vector<std::byte> payload_;
    std::unique_ptr<Producer> producer_;
};

}  // namespace

std::vector<Table> peers_tables(std::uint64_t payload_bytes, const Effort& effort) {
    const std::uint64_t lap = kCapacityBytes / record_bytes(payload_bytes) + 1;
    Table table = {"one record", {}};
    auto add = [&](const std::string& name, std::shared_ptr<Peer> peer) {
        table.variants.push_back({name, [peer](std::uint64_t n) { peer->emit(n); },
                                  effort.warm_up_laps * lap, effort.sample_events});
    };

    add("Producer::emit, single", std::make_shared<Ours>(payload_bytes, Barrier::kFull));
    add("Producer::emit, asymmetric", std::make_shared<Ours>(payload_bytes, Barrier::kAsymmetric));
    for (const std::string& path : effort.peers) {
        const PeerInfo info = load(path);

        add(info.name, info.make(payload_bytes));
    }
    return {table};
}

std::string peer_note(const std::string& path) {
    const PeerInfo info = load(path);

    return std::string(info.name) + ": " + info.leaves_out;
}

std::string peer_fault(const std::string& path) {
    const PeerInfo info = load(path);

    try {
        info.make(kPayloadBytes[0])->emit(1);
    } catch (const std::runtime_error& error) {
        return std::string(info.name) + ": " + error.what();
    }
    return {};
}

}  // namespace kmes::bench
