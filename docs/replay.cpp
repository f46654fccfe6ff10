// Replay the vectors of draftproof: replay FILE. C++17 and its standard library.
// Part 1 reads JSON and numbers, part 2 is the arithmetic, part 3 compares.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

// --- 1. The file: as much JSON as it has; no string of it holds an escape ---------------
struct Json {
    std::string text;  // of a string, or of a number or null as it is written
    std::vector<Json> items;
    std::vector<std::string> names;  // of the items, in an object
    const Json& operator[](const char* name) const {
        return items.at(std::find(names.begin(), names.end(), name) - names.begin());
    }
    long integer() const { return std::strtol(text.c_str(), nullptr, 10); }
    double number() const { return std::strtod(text.c_str(), nullptr); }  // hexadecimal, too
};

char skip(const char*& at) {
    while (std::isspace(static_cast<unsigned char>(*at)) || *at == ',' || *at == ':') ++at;
    return *at;
}

Json parse(const char*& at) {
    Json value;
    const char first = skip(at);
    if (first != '[' && first != '{' && first != '"') {
        while (*at == '-' || std::isalnum(static_cast<unsigned char>(*at))) value.text += *at++;
        return value;
    }
    if (first == '"') while (*++at != '"') value.text += *at;
    else for (++at; skip(at) != ']' && *at != '}';) {
        if (first == '{') value.names.push_back(parse(at).text);
        value.items.push_back(parse(at));
    }
    ++at;  // past the closing character
    return value;
}

template <class Real> using Row = std::vector<Real>;
template <class Real> using Rows = std::vector<Row<Real>>;
template <class Real> Row<Real> row(const Json& json) {
    Row<Real> read;
    for (const Json& item : json.items) read.push_back(static_cast<Real>(item.number()));
    return read;
}

template <class Real> Rows<Real> rows(const Json& json) {
    Rows<Real> read;
    if (json.names[0] != "rule")
        for (const Json& line : json["hex"].items) read.push_back(row<Real>(line));
    else for (const Json& pair : json["rule"]["rows"].items) {  // too long to be written out
        long size = json["rule"]["size"].integer(), modulus = json["rule"]["modulus"].integer();
        long a = pair.items[0].integer(), b = pair.items[1].integer();
        read.emplace_back();
        for (long v = 0; v < size; ++v)
            read.back().push_back(Real(2 * ((a * v + b) % modulus) + 1) / Real(size * modulus));
    }
    return read;
}

// --- 2. The arithmetic ------------------------------------------------------------------
struct Verdict { long accepted, next; };
template <class Real> bool below(Real left, Real right) {
#ifdef INCLUSIVE  // a mistake that the vectors find: it accepts p = 0 at u = 0
    return left <= right;
#else
    return left < right;
#endif
}

// max(c * p - q, 0), where NaN and infinity stay; q is null where there is no draft.
template <class Real> Row<Real> excess(Real c, const Row<Real>& p, const Row<Real>* q) {
    Row<Real> weights;
    for (std::size_t v = 0; v < p.size(); ++v) {
        Real part = q ? c * p[v] - (*q)[v] : p[v];
        weights.push_back(part <= 0 && std::isfinite(part) ? Real(0) : part);
    }
    return weights;
}

template <class Real> Real sum(const Row<Real>& row) {
    return std::accumulate(row.begin(), row.end(), Real(0));
}

// The first token of positive weight whose cumulative weight exceeds u * total.
template <class Real> long draw(const Row<Real>& weights, Real u) {
    Real total = sum(weights), reached = 0;
    if (!(total > 0 && std::isfinite(total) && u >= 0 && u < 1)) return -1;
    long last = -1;
    for (std::size_t v = 0; v < weights.size() && !(last >= 0 && reached > u * total); ++v) {
        reached += weights[v];
        if (weights[v] > 0) last = long(v);
    }
    return last;
}

template <class Real> Verdict verify(bool block, const Rows<Real>& q, const Rows<Real>& p,
                                     const std::vector<long>& x, const Row<Real>& u) {
    long size = long(p[0].size()), accepted = 0;
    std::size_t n = 0;  // drafts: those before the first -1
    while (n < x.size() && x[n] != -1) ++n;
    Real c = 1, scale = 1;  // the product of ratios, and what it was at the last success
    for (std::size_t i = 0; i < n; ++i) {
        Verdict refused{block ? 0 : accepted, -1};
        if (x[i] < 0 || x[i] >= size || !(u[i] >= 0 && u[i] < 1)) return refused;
        Real qx = q[i][x[i]], px = p[i][x[i]];
        if (!std::isfinite(qx) || !std::isfinite(px)) return refused;
        if (!block && !below(u[i] * qx, px)) break;
        if (!block) { ++accepted; continue; }
        c = qx == 0 ? Real(c * px > 0) : std::fmin(Real(1), c * px / qx);
        Real s = i + 1 == n ? c : sum(excess(c, p[i + 1], &q[i + 1])), whole = s + (1 - c);
        if (!std::isfinite(s)) return refused;
        if (whole != 0 && !below(u[i] * whole, s)) continue;  // 0/0 is 1
        accepted = long(i) + 1;
        scale = c;
    }
    const Row<Real>& row = p[accepted];
    Row<Real> weights = excess(scale, row, accepted < long(n) ? &q[accepted] : nullptr);
    long next = draw(sum(weights) == 0 ? row : weights, u.back());
    return {block && next < 0 ? 0 : accepted, next};
}

// --- 3. The comparison: any of the outcomes is right ------------------------------------
int run, failed;
void count(bool right, const Json& test, const Json& group, Verdict got) {
    ++run;
    failed += !right;
    if (!right) std::printf("case %s (%s): got %ld, %ld\n", test["id"].text.c_str(),
                            group["type"].text.c_str(), got.accepted, got.next);
}

// Chains; and draws, which are chains without drafts.
template <class Real> void replay(const Json& group) {
    bool chain = group["type"].text == "chain", block = chain && group["rule"].text == "block";
    Rows<Real> q, p = rows<Real>(group[chain ? "target_probs" : "weights"]);
    std::vector<long> x;
    if (chain) for (const Json& token : group["draft_tokens"].items) x.push_back(token.integer());
    if (chain && group["draft_probs"].text != "null") q = rows<Real>(group["draft_probs"]);
    else for (long token : x) {  // drafts without a law: one-hot rows
        q.emplace_back(p[0].size(), Real(0));
        if (token >= 0 && token < long(p[0].size())) q.back()[token] = 1;
    }
    for (const Json& test : group["tests"].items) {
        if (test["uniform_dtypes"].items[0].text == "float64" && sizeof(Real) == 4) continue;
        Verdict got = verify(block, q, p, x, row<Real>(test["uniforms"]["hex"]));
        bool right = false;
        for (const Json& told : test["outcomes"].items)
            right |= got.next == told["next_token"].integer() &&
                     got.accepted == told["num_accepted"].integer();
        count(right, test, group, got);
    }
}

// A step in doubles: the quotient is rounded once, so it must be the very number.
void replay_step(const Json& group) {
    Row<double> q = row<double>(group["draft_probs"]["hex"]);
    Row<double> p = row<double>(group["target_probs"]["hex"]), residual = excess(1.0, p, &q);
    double total = sum(residual);
    for (double& part : residual) part /= total > 0 ? total : 1;
    for (const Json& test : group["tests"].items) {
        long x = test["drafted_token"].integer(), size = long(p.size());
        bool refused = x < 0 || x >= size || !(q[x] > 0) || !std::isfinite(total), right = false;
        for (const Json& told : test["outcomes"].items) {
            bool same = (told["accept_prob"].text == "null") == refused;
            if (same && !refused) {
                same = std::fmin(1.0, p[x] / q[x]) == told["accept_prob"]["hex"].number();
                Row<double> needed = row<double>(told["residual"]["hex"]);
                for (long v = 0; v < size; ++v)
                    same &= std::fabs(residual[v] - needed[v]) <= 1e-15 * needed[v];
            }
            right |= same;
        }
        count(right, test, group, {0, refused ? -1 : x});
    }
}

int main(int words, char** word) {
    std::FILE* file = std::fopen(words > 1 ? word[1] : "draftproof-vectors.json", "r");
    std::string text;
    for (int next; file && (next = std::fgetc(file)) != EOF;) text += static_cast<char>(next);
    if (text.empty()) return std::puts("usage: replay FILE"), 2;
    const char* at = text.c_str();
    Json document = parse(at);
    for (const Json& group : document["groups"].items) {
        const std::string& type = group["type"].text;
        if (type == "step") replay_step(group);
        if (type != "chain" && type != "draw") continue;
        // Every number is a double; those of float32 and of coarser formats are floats, too.
        replay<double>(group);
        if (group["dtypes"].items[0].text != "float64") replay<float>(group);
    }
    std::printf("%d cases, %d failed\n", run, failed);
    return failed > 0;
}
