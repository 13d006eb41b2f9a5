#include <algorithm>

#include "comm/communicator.h"

namespace shardplan::comm {

namespace {

class SelfWorld final : public World {
public:
    std::int64_t rank() const override { return 0; }
    std::int64_t size() const override { return 1; }
    std::int64_t local_rank() const override { return 0; }
    std::int64_t local_size() const override { return 1; }
    void barrier() override {}
    void broadcast(std::string& /*bytes*/) override {}
    std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }

protected:
    void all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
        std::copy(own.begin(), own.end(), all.begin());
    }
    std::unique_ptr<Transport> transport(const mesh::Mesh& /*mesh*/, const GroupOptions& /*options*/) override {
        return nullptr;
    }
};

}  // namespace

std::unique_ptr<World> make_self_world() {
    return std::make_unique<SelfWorld>();
}

}  // namespace shardplan::comm
