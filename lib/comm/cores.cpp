#include "comm/cores.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace shardplan::comm {
namespace {

/// Limit of the control group: version 2 has "max 100000" or "200000 100000" in one file, version 1 two files.
double group_quota() {
    std::string quota;
    double period = 0.0;
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period) {
        return quota == "max" || period <= 0.0 ? 0.0 : std::stod(quota) / period;
    }
    double time = 0.0;
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (quota_file >> time && period_file >> period && time > 0.0 && period > 0.0) {
        return time / period;
    }
    return 0.0;
}

std::vector<int> affinity() {
    std::vector<int> cores;
    for (std::size_t size = CPU_SETSIZE; size <= (std::size_t{1} << 20); size *= 2) {
        cpu_set_t* set = CPU_ALLOC(size);
        const bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0;
        for (std::size_t core = 0; known && core < size; ++core) {
            if (CPU_ISSET_S(core, CPU_ALLOC_SIZE(size), set)) {
                cores.push_back(static_cast<int>(core));
            }
        }
        CPU_FREE(set);
        if (known) {
            break;
        }
    }
    return cores;
}

std::string text_of(const RankCores& cores) {
    std::string text = fmt::format("{} {}", cores.host, cores.quota);
    for (const int core : cores.cores) {
        text += fmt::format(" {}", core);
    }
    return text;
}

RankCores read(const std::string& text) {
    RankCores cores;
    std::istringstream in(text);
    in >> cores.host >> cores.quota;
    for (int core = 0; in >> core;) {
        cores.cores.push_back(core);
    }
    return cores;
}

}  // namespace

RankCores own_cores() {
    std::array<char, 256> name{};
    const bool known = gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
    RankCores cores{known ? name.data() : "localhost", affinity(), group_quota()};
    if (cores.cores.empty()) {
        const long online = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
        for (int core = 0; core < static_cast<int>(online); ++core) {
            cores.cores.push_back(core);
        }
    }
    return cores;
}

std::vector<RankCores> gather_cores(World& world) {
    std::string all;
    for (const std::string& text : world.gather(text_of(own_cores()))) {
        all += text + '\n';
    }
    world.broadcast(all);
    std::vector<RankCores> ranks;
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) {
        ranks.push_back(read(line));
    }
    return ranks;
}

int fair_threads(std::span<const RankCores> ranks, std::int64_t rank) {
    const RankCores& own = ranks[static_cast<std::size_t>(rank)];
    std::map<int, double> users;
    double neighbours = 0.0;
    for (const RankCores& other : ranks) {
        if (other.host != own.host) {
            continue;
        }
        neighbours += 1.0;
        for (const int core : other.cores) {
            users[core] += 1.0;
        }
    }
    double share = 0.0;
    for (const int core : own.cores) {
        share += 1.0 / users[core];
    }
    if (own.quota > 0.0) {
        share = std::min(share, own.quota / neighbours);
    }
    return std::max(1, static_cast<int>(std::floor(share + 1e-6)));
}

bool oversubscribed(std::span<const RankCores> ranks, std::span<const std::int64_t> threads) {
    struct Host {
        std::set<int> cores;
        double quota = 0.0;
        std::int64_t threads = 0;
    };
    std::map<std::string, Host> hosts;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        Host& host = hosts[ranks[rank].host];
        host.cores.insert(ranks[rank].cores.begin(), ranks[rank].cores.end());
        host.quota = ranks[rank].quota;
        host.threads += threads[rank];
    }
    return std::any_of(hosts.begin(), hosts.end(), [](const auto& entry) {
        const Host& host = entry.second;
        const auto limit = static_cast<std::int64_t>(std::ceil(host.quota));
        return host.threads > std::ssize(host.cores) || (limit > 0 && host.threads > limit);
    });
}

std::string cores_text(std::span<const int> cores) {
    std::string text;
    for (std::size_t i = 0; i < cores.size();) {
        std::size_t end = i + 1;
        while (end < cores.size() && cores[end] == cores[end - 1] + 1) {
            ++end;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", cores[i]);
        if (end - i > 1) {
            text += fmt::format("-{}", cores[end - 1]);
        }
        i = end;
    }
    return text;
}

}  // namespace shardplan::comm
