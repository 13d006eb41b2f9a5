#include "comm/window_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/interval.h"
#include "comm/blocks.h"

namespace shardplan::comm {

using base::Interval;
using tensor::ConstView;
using tensor::View;

namespace {

constexpr std::int64_t whole_line = 64;

void copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (bytes > 0) {  // the pointers of empty tensors may be null
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
}

/// The largest multiple of a line of which `count` fit a half.
std::int64_t share_of_half(const Window& window, std::int64_t count) {
    return window.half_bytes() / count / whole_line * whole_line;
}

/// Calls step(part) for consecutive parts of at most `piece` of `bytes`.
template <typename Step>
void in_parts(std::int64_t bytes, std::int64_t piece, Step step) {
    for (std::int64_t begin = 0; begin < bytes; begin += piece) {
        step(Interval{begin, std::min(begin + piece, bytes)});
    }
}

/// The n equal blocks of one dimension of a tensor.
class Blocks {
public:
    Blocks(const tensor::Shape& shape, tensor::DType dtype, int dim, std::int64_t n)
        : first_(runs_of(shape, dtype, dim, nth_block(shape, dim, n, 0))) {}
    Runs operator[](std::int64_t p) const {
        Runs runs = first_;
        runs.offset = p * runs.bytes;
        return runs;
    }
    std::int64_t run_bytes() const { return first_.bytes; }
    std::int64_t block_bytes() const { return first_.count * first_.bytes; }

private:
    Runs first_;
};

void put_part(const Window& window, const std::byte* tensor, const Runs& runs, Interval part, std::byte* to) {
    visit_part(runs, part, [&](std::int64_t whole, std::int64_t at, std::int64_t bytes) {
        window.put(to + at, tensor + whole, bytes);
    });
}

void take_part(const std::byte* from, const Runs& runs, Interval part, std::byte* tensor) {
    visit_part(runs, part, [&](std::int64_t whole, std::int64_t at, std::int64_t bytes) {
        copy(tensor + whole, from + at, bytes);
    });
}

/// The sources of a reduction, in order of position.
class Sources {
public:
    Sources(Reduction reduction, tensor::DType dtype, std::int64_t n)
        : reduction_(reduction),
          dtype_(dtype),
          element_(tensor::size_of(dtype)),
          starts_(static_cast<std::size_t>(n)),
          shifted_(starts_) {}
    const std::byte*& operator[](std::int64_t p) { return starts_[static_cast<std::size_t>(p)]; }
    void reduce(std::int64_t bytes, std::byte* out) const {
        ordered_reduce(reduction_, dtype_, starts_, bytes / element_, out);
    }
    /// Of the bytes `part` of all sources.
    void reduce(Interval part, std::byte* out) {
        std::transform(starts_.begin(), starts_.end(), shifted_.begin(),
                       [&](const std::byte* start) { return start + part.begin; });
        ordered_reduce(reduction_, dtype_, shifted_, part.size() / element_, out);
    }

private:
    Reduction reduction_;
    tensor::DType dtype_;
    std::int64_t element_;
    std::vector<const std::byte*> starts_;
    std::vector<const std::byte*> shifted_;
};

/// Asks for bytes that another core wrote.
void prefetch(const std::byte* from, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += whole_line) {
        __builtin_prefetch(from + i, 0, 0);
    }
}

/// All members read all of everything: one meeting per piece. While a piece is read, the next one is written.
void all_reduce_at_once(Window& window, Reduction reduction, const View& data) {
    constexpr std::int64_t tile = 2048;
    const std::int64_t piece = window.half_bytes();
    const std::int64_t bytes = data.bytes();
    Sources sources(reduction, data.dtype, window.n());
    window.put(window.own_half(), data.data, std::min(piece, bytes));
    in_parts(bytes, piece, [&](Interval part) {
        window.meet();
        for (std::int64_t p = 0; p < window.n(); ++p) {
            sources[p] = p == window.position() ? data.data + part.begin : window.half_of(p);
        }
        in_parts(part.size(), tile, [&](Interval at) {
            for (std::int64_t i = 1; i < window.n(); ++i) {
                prefetch(window.half_of((window.position() + i) % window.n()) + at.begin, at.size());
            }
            const Interval next = base::intersect({part.end + at.begin, part.end + at.end}, {0, bytes});
            if (!next.empty()) {
                window.put(window.own_half() + at.begin, data.data + next.begin, next.size());
            }
            sources.reduce(at, data.data + part.begin + at.begin);
        });
    });
}

/// A piece of an all-reduce in which each member sums a slice and the others take the sums over.
struct SlicedPiece {
    std::int64_t begin = 0;  ///< element
    std::int64_t count = 0;
    std::int64_t n = 1;
    std::int64_t element = 1;

    Interval slice(std::int64_t p) const {  // bytes of the tensor
        return {(begin + count * p / n) * element, (begin + count * (p + 1) / n) * element};
    }
};

/// Two phases; the second of a piece shares its meeting with the first of the next piece. A half holds a slice for each
/// member and behind them the own sums of the piece before.
class SlicedAllReduce {
public:
    SlicedAllReduce(Window& window, Reduction reduction, const View& data)
        : window_(window),
          data_(data.data),
          slice_bytes_(share_of_half(window, window.n() + 1)),
          sources_(reduction, data.dtype, window.n()) {
        const std::int64_t element = tensor::size_of(data.dtype);
        const std::int64_t longest = slice_bytes_ / element * window.n();
        SlicedPiece before{0, 0, window.n(), element};
        for (std::int64_t begin = 0; begin < data.count(); begin += longest) {
            const SlicedPiece piece{begin, std::min(longest, data.count() - begin), window.n(), element};
            step(before, piece);
            before = piece;
        }
        step(before, {0, 0, window.n(), element});
    }

private:
    void step(const SlicedPiece& before, const SlicedPiece& piece) {
        for_others([&](std::int64_t p) {
            const Interval slice = piece.slice(p);
            window_.put(window_.own_half() + p * slice_bytes_, data_ + slice.begin, slice.size());
        });
        window_.meet();
        if (piece.count > 0) {
            reduce(piece.slice(window_.position()));
        }
        for_others([&](std::int64_t p) {
            const Interval slice = before.slice(p);
            copy(data_ + slice.begin, window_.half_of(p) + window_.n() * slice_bytes_, slice.size());
        });
    }

    /// Into the tensor and, while it is in the nearest cache, into the next half.
    void reduce(Interval own) {
        constexpr std::int64_t tile = 4096;
        for (std::int64_t p = 0; p < window_.n(); ++p) {
            sources_[p] =
                p == window_.position() ? data_ + own.begin : window_.half_of(p) + window_.position() * slice_bytes_;
        }
        std::byte* sums = window_.own_half() + window_.n() * slice_bytes_;
        in_parts(own.size(), tile, [&](Interval part) {
            std::byte* out = data_ + own.begin + part.begin;
            sources_.reduce(part, out);
            window_.put(sums + part.begin, out, part.size());
        });
    }

    template <typename Visit>
    void for_others(Visit visit) {
        for (std::int64_t i = 1; i < window_.n(); ++i) {
            visit((window_.position() + i) % window_.n());
        }
    }

    Window& window_;
    std::byte* data_;
    std::int64_t slice_bytes_;
    Sources sources_;
};

}  // namespace

void window_all_gather(Window& window, int dim, const ConstView& in, const View& out) {
    const Blocks blocks(out.shape, out.dtype, dim, window.n());
    in_parts(in.bytes(), window.half_bytes(), [&](Interval part) {
        window.put(window.own_half(), in.data + part.begin, part.size());
        window.arrive();
        take_part(in.data + part.begin, blocks[window.position()], part, out.data);
        window.wait();
        for (std::int64_t i = 1; i < window.n(); ++i) {
            const std::int64_t p = (window.position() + i) % window.n();
            take_part(window.half_of(p), blocks[p], part, out.data);
        }
    });
}

void window_reduce_scatter(Window& window, int dim, const ConstView& in, const View& out) {
    constexpr std::int64_t long_run = 512;
    const Blocks blocks(in.shape, in.dtype, dim, window.n());
    const std::int64_t me = window.position();
    const std::int64_t share = share_of_half(window, window.n());
    // The own block is summed where it lies, unless its runs are so short that it is cheaper to line them up.
    const bool in_place = blocks.run_bytes() >= long_run;
    Sources sources(Reduction::sum, in.dtype, window.n());
    in_parts(out.bytes(), share, [&](Interval part) {
        for (std::int64_t p = 0; p < window.n(); ++p) {
            if (p != me || !in_place) {
                put_part(window, in.data, blocks[p], part, window.own_half() + p * share);
            }
        }
        window.meet();
        if (!in_place) {
            for (std::int64_t p = 0; p < window.n(); ++p) {
                sources[p] = window.half_of(p) + me * share;
            }
            return sources.reduce(part.size(), out.data + part.begin);
        }
        visit_part(blocks[me], part, [&](std::int64_t whole, std::int64_t at, std::int64_t bytes) {
            for (std::int64_t p = 0; p < window.n(); ++p) {
                sources[p] = p == me ? in.data + whole : window.half_of(p) + me * share + at;
            }
            sources.reduce(bytes, out.data + part.begin + at);
        });
    });
}

void window_all_reduce(Window& window, Reduction reduction, const View& data) {
    // What a member reads of others: at once (n - 1) of the data, in slices 2 (n - 1) / n of them, but with one more
    // meeting. The limits are measured; past the caches the extra write of the sums costs what two members save.
    constexpr std::int64_t few_bytes = std::int64_t{16} << 10;
    const bool at_once = window.n() == 2 && window.stores() == Stores::streaming;
    if (at_once || data.bytes() <= few_bytes) {
        return all_reduce_at_once(window, reduction, data);
    }
    SlicedAllReduce(window, reduction, data);
}

void window_all_to_all(Window& window, int split_dim, int concat_dim, const ConstView& in, const View& out) {
    const Blocks sent(in.shape, in.dtype, split_dim, window.n());
    const Blocks arriving(out.shape, out.dtype, concat_dim, window.n());
    const std::int64_t me = window.position();
    const std::int64_t share = share_of_half(window, window.n());
    in_parts(sent.block_bytes(), share, [&](Interval part) {
        for (std::int64_t i = 1; i < window.n(); ++i) {
            const std::int64_t p = (me + i) % window.n();
            put_part(window, in.data, sent[p], part, window.own_half() + p * share);
        }
        window.arrive();
        visit_part(sent[me], part, [&](std::int64_t whole, std::int64_t at, std::int64_t bytes) {
            const std::int64_t begin = part.begin + at;
            take_part(in.data + whole, arriving[me], {begin, begin + bytes}, out.data);
        });
        window.wait();
        for (std::int64_t i = 1; i < window.n(); ++i) {
            const std::int64_t p = (me + i) % window.n();
            take_part(window.half_of(p) + me * share, arriving[p], part, out.data);
        }
    });
}

void window_all_to_all_rows(Window& window, const std::byte* send, std::span<const std::int64_t> send_rows,
                            std::byte* received, std::span<const std::int64_t> receive_rows, std::int64_t row_bytes) {
    const std::int64_t n = window.n();
    const auto me = static_cast<std::size_t>(window.position());
    // A half begins with where the rows for each position begin among the sent bytes, and where they end.
    std::vector<std::int64_t> ends{0};
    std::vector<std::int64_t> arrivals{0};
    for (std::size_t p = 0; p < send_rows.size(); ++p) {
        ends.push_back(ends.back() + send_rows[p] * row_bytes);
        arrivals.push_back(arrivals.back() + receive_rows[p] * row_bytes);
    }
    const std::int64_t header = ((n + 1) * 8 + whole_line - 1) / whole_line * whole_line;
    const std::int64_t piece = window.half_bytes() - header;
    const Interval own{ends[me], ends[me + 1]};
    std::vector<Interval> for_me(send_rows.size());
    std::int64_t longest = 1;
    for (Interval part{0, piece}; part.begin < longest; part = {part.end, part.end + piece}) {
        std::byte* half = window.own_half();
        copy(half, reinterpret_cast<const std::byte*>(ends.data()), (n + 1) * 8);
        for (const Interval leaving : {Interval{0, own.begin}, Interval{own.end, ends.back()}}) {
            const Interval now = base::intersect(leaving, part);
            if (!now.empty()) {
                window.put(half + header + now.begin - part.begin, send + now.begin, now.size());
            }
        }
        window.arrive();
        if (part.begin == 0) {
            copy(received + arrivals[me], send + own.begin, own.size());
        }
        window.wait();
        for (std::int64_t i = 1; i < n; ++i) {
            const auto p = static_cast<std::size_t>((window.position() + i) % n);
            const std::byte* other = window.half_of(static_cast<std::int64_t>(p));
            const auto* its_ends = reinterpret_cast<const std::int64_t*>(other);
            if (part.begin == 0) {
                for_me[p] = {its_ends[me], its_ends[me + 1]};
                longest = std::max({longest, ends.back(), its_ends[n]});
                if (for_me[p].size() != receive_rows[p] * row_bytes) {
                    throw std::runtime_error(fmt::format("all-to-all-v: position {} sends {} bytes, {} are expected", p,
                                                         for_me[p].size(), receive_rows[p] * row_bytes));
                }
            }
            const Interval now = base::intersect(for_me[p], part);
            if (!now.empty()) {
                copy(received + arrivals[p] + now.begin - for_me[p].begin, other + header + now.begin - part.begin,
                     now.size());
            }
        }
    }
}

void window_permute(Window& window, std::int64_t source, bool gives, const std::byte* in, std::byte* out,
                    std::int64_t bytes) {
    in_parts(bytes, window.half_bytes(), [&](Interval part) {
        if (gives) {
            window.put(window.own_half(), in + part.begin, part.size());
        }
        window.meet();
        if (source >= 0) {
            copy(out + part.begin, window.half_of(source), part.size());
        }
    });
}

}  // namespace shardplan::comm
